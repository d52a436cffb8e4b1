"""Certificates by which a proxy answers for any host: who asks must not check who signed them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from tempfile import NamedTemporaryFile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

KEY = ec.generate_private_key(ec.SECP256R1())  # of this process alone
LIFE = timedelta(days=30)


@lru_cache(maxsize=1024)
def context(host: str) -> ssl.SSLContext:
    """Return what serves TLS in the name of a host."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with NamedTemporaryFile() as file:  # ssl reads files only
        file.write(_private_key() + _certificate(host))
        file.flush()
        made.load_cert_chain(file.name)
    return made


def _private_key() -> bytes:
    return KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _certificate(host: str) -> bytes:
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an offline web")])
    builder = (
        x509.CertificateBuilder(name, name, KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectAlternativeName([_name(host)]), critical=False)
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
