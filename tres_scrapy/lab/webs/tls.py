"""Certificates with which a proxy answers for any host; clients must not verify the issuer."""

from __future__ import annotations

import ssl
from functools import lru_cache

from trustme import CA

AUTHORITY = CA()  # known to this process only
UNNAMED = "unnamed.invalid"


@lru_cache(maxsize=1024)
def context(host: str) -> ssl.SSLContext:
    """Return the TLS context of a server that answers for a host."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        certificate = AUTHORITY.issue_cert(host)
    except ValueError:  # not a valid IDNA name, such as one with an underscore
        certificate = AUTHORITY.issue_cert(UNNAMED)
    certificate.configure_cert(made)
    return made
