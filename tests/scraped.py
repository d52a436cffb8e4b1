"""Metrics as Prometheus reads them."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def samples_of(text):
    families = text_string_to_metric_families(text)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def asked(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return samples_of(answer.read().decode())
