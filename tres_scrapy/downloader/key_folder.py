"""The folder of an identity: key files, and the directory of their public keys to publish."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tres_scrapy.downloader.identity import DIRECTORY, LABEL, SUFFIX, Identity
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

WELL_KNOWN: Final = f"/.well-known/{DIRECTORY}"
MEDIA_TYPE: Final = f"application/{DIRECTORY}+json"


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
