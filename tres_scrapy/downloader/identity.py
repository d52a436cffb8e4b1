"""The identity of a crawler: a key that signs its requests (Web Bot Auth), and what to publish.

The protocol is draft-ietf-webbotauth-httpsig-protocol: HTTP Message Signatures (RFC 9421) by an
Ed25519 key whose public half the operator publishes as a JSON Web Key Set.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from shlex import quote
from stat import S_IMODE
from time import time
from typing import Any, Final, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tres_scrapy.url.message import TresError, plainly
from tres_scrapy.url.whole_file import whole_file

DIRECTORY: Final = "http-message-signatures-directory"  # the file to publish
WELL_KNOWN: Final = f"/.well-known/{DIRECTORY}"
MEDIA_TYPE: Final = f"application/{DIRECTORY}+json"
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

    def sign_request(self, authority: str) -> dict[str, str]:
        """Return headers for a request to a host (with its port, unless that is the default)."""
        now, agent = int(time()), f'"{self.agent}"'
        covered = {'"@authority"': authority.lower(), f'"signature-agent";key="{LABEL}"': agent}
        parameters = (
            f';created={now};keyid="{self.keyid}";alg="ed25519";expires={now + LIFETIME}'
            f';nonce="{token_urlsafe(NONCE)}";tag="web-bot-auth"'
        )
        described, signature = self._sign(covered, parameters)
        return {
            "Signature-Agent": f"{LABEL}={agent}",
            "Signature-Input": f"{LABEL}={described}",
            "Signature": f"{LABEL}={signature}",
        }

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


class KeyFolder:
    """A folder of key files, and the directory of their public keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def directory(self) -> Path:
        """The path of the directory file."""
        return self.path / DIRECTORY

    @property
    def headers(self) -> Path:
        """The path of the headers that the directory is published with."""
        return self.path / f"{DIRECTORY}.headers"

    def identities(self) -> dict[Path, Identity]:
        """Return all keys by their files and days; raise TresError as `Identity.read` does."""
        return {path: Identity.read(path) for path in sorted(self.path.glob(f"*{SUFFIX}"))}

    def add(self, agent: str | None) -> Path:
        """Make a key for an agent, None for that of the other keys; return the path of the key."""
        now, known = datetime.now(UTC), self.identities()
        agents = {each.agent for each in known.values()} | ({agent} if agent else set())
        if not agents:
            raise TresError("give the https address of the site that will name your crawler")
        if len(agents) > 1:
            raise TresError(
                f"{str(self.path)!r} would hold keys of {' and '.join(sorted(agents))}: give "
                "another --folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        path = Identity(agents.pop(), Ed25519PrivateKey.generate()).write(self.path, now)
        self._publish(self.identities().values(), now)
        return path

    def remove(self, key: Path) -> None:
        """Delete a key file of the folder; the directory no longer lists it."""
        Identity.read(key)
        known = {path.resolve(): each for path, each in self.identities().items()}
        if known.pop(key.resolve(), None) is None:
            raise TresError(f"{str(key)!r} is not in {str(self.path)!r}: give its --folder")
        self._publish(known.values(), datetime.now(UTC))  # first: no deleted key may be listed
        key.unlink()

    def _publish(self, identities: Collection[Identity], now: datetime) -> None:
        """Write the directory and its headers (draft, appendix on the domain binding)."""
        keys = [{**each.public, "kid": each.keyid, "use": "sig"} for each in identities]
        body = json.dumps({"keys": keys}, indent=1).encode() + b"\n"
        digest = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
        signed = [each.sign_directory(digest, now) for each in identities]
        lines = [
            f"Content-Type: {MEDIA_TYPE}",
            "Cache-Control: max-age=86400",
            f"Content-Digest: {digest}",
        ]
        if signed:
            lines.append(f"Signature-Input: {_members(described for described, _ in signed)}")
            lines.append(f"Signature: {_members(signature for _, signature in signed)}")
        headers = "".join(f"{line}\n" for line in lines).encode()
        for path, text in ((self.directory, body), (self.headers, headers)):
            with whole_file(path) as file:
                file.write(text)


def _members(values: Iterable[str]) -> str:
    """Return values as a dictionary of RFC 9651."""
    return ", ".join(f"{LABEL}{number}={value}" for number, value in enumerate(values, 1))
