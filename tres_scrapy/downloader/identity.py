"""The identity of a crawler: a key that signs its requests (Web Bot Auth), and what to publish.

The protocol is draft-ietf-webbotauth-httpsig-protocol: HTTP Message Signatures (RFC 9421) by an
Ed25519 key whose public half the operator publishes as a JSON Web Key Set.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from shlex import quote
from stat import S_IMODE
from time import time
from typing import Any, Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tres_scrapy.url.message import TresError, plainly

DIRECTORY: Final = "http-message-signatures-directory"  # the file to publish
LABEL: Final = "tres"  # of our members in the three headers
LIFETIME: Final = 300  # seconds that a signature is valid
NONCE: Final = 32  # random bytes
PROVEN: Final = 366 * 86_400  # seconds that the headers of the directory are valid
SUFFIX: Final = ".key"
LONGEST: Final = 64 * 1024  # bytes of a key file that are read
OTHERS: Final = 0o077  # permissions of users other than the owner
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"  # of a host
ORIGIN: Final = re.compile(rf"(https://{_LABEL}(?:\.{_LABEL})*(?::(\d{{1,5}}))?)/?", re.ASCII)
MAX_PORT: Final = 65_535
KIND: Final = {"crv": "Ed25519", "kty": "OKP"}


class SignatureHeaders(NamedTuple):
    """The values of Signature-Agent, Signature-Input and Signature."""

    agent: str
    input: str
    signature: str


class Identity:
    """A key and the https origin, `agent`, whose directory lists it; `keyid` is its thumbprint."""

    def __init__(self, agent: str, key: Ed25519PrivateKey) -> None:
        self.agent = agent
        self._key = key
        self.public = KIND | {"x": _base64url(key.public_key().public_bytes_raw())}
        # RFC 7638: the members of the public key, sorted, without spaces
        thumbprint = json.dumps(self.public, sort_keys=True, separators=(",", ":"))
        self.keyid = _base64url(sha256(thumbprint.encode()).digest())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key file; raise TresError if it is not one, or if other users may read it."""
        try:
            with path.open("rb") as file:
                mode, text = S_IMODE(os.fstat(file.fileno()).st_mode), file.read(LONGEST)
        except OSError as error:
            raise TresError(f"the key cannot be read: {plainly(error)}") from None
        try:
            fields: dict[str, Any] = json.loads(text)
            secret = Ed25519PrivateKey.from_private_bytes(_bytes_of(fields["d"]))
            identity = cls(origin_of(fields["agent"]), secret)
        except (ValueError, TypeError, KeyError, AttributeError):  # its text must not be shown
            raise TresError(f"{str(path)!r} is not a key file of `tres identity new`") from None
        if mode & OTHERS:
            raise TresError(
                f"the key {str(path)!r} may be read by other users (mode {mode:04o}): "
                f"run `chmod 600 {quote(str(path))}`"
            )
        return identity

    def write(self, folder: Path, now: datetime) -> Path:
        """Write the key file, which only its owner may read, and return its path."""
        path = folder / f"{now:%Y-%m-%d}-{self.keyid[:8]}{SUFFIX}"
        secret = self._key.private_bytes_raw()
        fields = {"agent": self.agent, **self.public, "d": _base64url(secret)}
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(fields, indent=1) + "\n")
        return path

    def sign_request(self, authority: str) -> SignatureHeaders:
        """Return headers for a request to a host (with its port, unless that is the default)."""
        now, agent = int(time()), f'"{self.agent}"'
        covered = {'"@authority"': authority.lower(), f'"signature-agent";key="{LABEL}"': agent}
        parameters = (
            f';created={now};keyid="{self.keyid}";alg="ed25519";expires={now + LIFETIME}'
            f';nonce="{token_urlsafe(NONCE)}";tag="web-bot-auth"'
        )
        signed = self._sign(covered, parameters)
        return SignatureHeaders(f"{LABEL}={agent}", *(f"{LABEL}={each}" for each in signed))

    def sign_directory(self, digest: str, now: datetime) -> tuple[str, str]:
        """Return members of Signature-Input and Signature that prove that we have the key."""
        created = int(now.timestamp())
        covered = {
            '"@authority";req': self.agent.removeprefix("https://"),
            '"content-digest"': digest,
        }
        parameters = (
            f';created={created};keyid="{self.keyid}";alg="ed25519";expires={created + PROVEN}'
            f';tag="{DIRECTORY}"'
        )
        return self._sign(covered, parameters)

    def _sign(self, covered: Mapping[str, str], parameters: str) -> tuple[str, str]:
        """Sign components (RFC 9421, 2.5 and 3.1): return `(names);parameters` and `:base64:`."""
        described = f"({' '.join(covered)}){parameters}"
        lines = [f"{name}: {value}" for name, value in covered.items()]
        base = "\n".join([*lines, f'"@signature-params": {described}'])
        return described, f":{b64encode(self._key.sign(base.encode('ascii'))).decode()}:"


def origin_of(url: str) -> str:
    """Return an https origin as browsers write it; raise TresError if the URL is more or less."""
    match = ORIGIN.fullmatch(url.lower())
    if match is None or int(match[2] or 443) > MAX_PORT:
        raise TresError(f"{url!r} must be https://HOST, without a path")
    return match[1].removesuffix(":443")


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes_of(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
