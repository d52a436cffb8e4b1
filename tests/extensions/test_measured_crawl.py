"""Metrics of `scrapy crawl tres` while it runs."""

import re
import signal
import subprocess

import pytest
from conftest import running, stats_of
from scraped import asked, samples_of

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_running_crawl_is_scraped(tmp_path):
    file = tmp_path / "tres.prom"
    command = ("crawl", "tres", "-a", "topic=food", "-a", "web=synthetic", "-a", "metrics_port=0")
    command += ("-a", f"metrics_file={file}", "-a", "warc=all")
    command += ("-a", f"output={tmp_path / 'pages.jsonl'}")
    said, samples = [], {}
    with running(*command, stderr=subprocess.PIPE) as process:
        for line in process.stderr:
            said.append(line)
            if told := re.search(r"Metrics are served at http://127\.0\.0\.1:(\d+)/metrics", line):
                port = int(told[1])
            if "Spider opened" in line:
                break
        while samples.get(("tres_pages_total",), 0) < 5 and process.poll() is None:
            samples = asked(port)
        process.send_signal(signal.SIGINT)
        said.append(process.communicate(timeout=300)[1])
    log = "".join(said)
    assert process.returncode == 0, log
    assert "Traceback" not in log
    assert samples["tres_choices_total",] >= samples["tres_pages_total",] >= 5
    assert samples["tres_frontier_links",] > 0
    assert samples["tres_tree_leaves",] >= 1
    assert samples["tres_gradient_steps_total",] > 0
    assert samples["tres_archive_bytes",] > 0
    last = samples_of(file.read_text(encoding="utf-8"))
    pages = stats_of(log)["tres/pages"]
    assert last["tres_pages_total",] == pages >= samples["tres_pages_total",]
