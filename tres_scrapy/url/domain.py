"""Domains as one registers them, of which pages are counted."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

import tldextract

_suffixes = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)  # the bundled list only


@lru_cache(maxsize=1_000)  # a new host is asked for twice
def registrable_domain(host: str) -> str:
    """Return the domain one registers to own `host`; an address or a single label is its own."""
    if ":" in host or host[-1:].isdecimal():
        try:
            return str(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            pass
    # The list's implicit rule "*": under an unlisted top-level domain, names are registered
    # directly below it.
    return _suffixes(host).top_domain_under_public_suffix or ".".join(host.split(".")[-2:])
