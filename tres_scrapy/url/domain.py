"""Registrable domains: pages are counted by domain."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

import tldextract

_suffixes = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)  # the bundled list only


@lru_cache(maxsize=1_000)  # each new host is looked up twice
def registrable_domain(host: str, *, private: bool = True) -> str:
    """Return the registrable domain of `host`; an address or a single label is its own domain.

    With `private`, so is each name below a private suffix of the list, such as `me.github.io`.
    """
    host = host.removesuffix(".")
    if ":" in host or host[-1:].isdecimal():
        try:
            return str(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            pass
    found = _suffixes(host, include_psl_private_domains=private)
    if found.suffix == host:
        return host
    # The list's implicit rule "*": under an unlisted top-level domain, domains are registered
    # directly below it.
    return found.top_domain_under_public_suffix or ".".join(host.split(".")[-2:])


def is_public_suffix(host: str, *, private: bool = True) -> bool:
    """Return whether domains are registered below `host`, such as edu or co.uk."""
    return _suffixes(host, include_psl_private_domains=private).suffix == host


def has_known_suffix(host: str) -> bool:
    """Return whether a host ends in a suffix of the list: notes.txt does not."""
    return bool(_suffixes(host).suffix)


def domain_of(url: str, *, private: bool = True) -> str:
    """Return the registrable domain of a URL."""
    return registrable_domain(urlsplit(url).hostname or "", private=private)
