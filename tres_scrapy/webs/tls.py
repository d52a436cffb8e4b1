"""Certificates by which a proxy answers for any host: a client must not check who signed them."""

from __future__ import annotations

import ssl
from functools import lru_cache

from trustme import CA

AUTHORITY = CA()  # of this process alone
UNNAMED = "unnamed.invalid"


@lru_cache(maxsize=1024)
def context(host: str) -> ssl.SSLContext:
    """Return what serves TLS in the name of a host."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        certificate = AUTHORITY.issue_cert(host)
    except ValueError:  # not a name by IDNA, such as one with an underscore
        certificate = AUTHORITY.issue_cert(UNNAMED)
    certificate.configure_cert(made)
    return made
