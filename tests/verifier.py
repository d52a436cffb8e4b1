"""A site that checks who signs its requests, by another implementation of RFC 9421."""

import json
from base64 import urlsafe_b64decode
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
    algorithms,
    signatures,
)

TAG = "web-bot-auth"


class Keys(HTTPSignatureKeyResolver):
    """The keys of a published directory."""

    def __init__(self, directory):
        keys = json.loads(directory)["keys"]
        assert all({"d", "p", "q", "k"}.isdisjoint(key) for key in keys)  # nothing secret
        self.keys = {key["kid"]: urlsafe_b64decode(key["x"] + "=") for key in keys}

    def resolve_public_key(self, key_id):
        found = self.keys.get(key_id)
        return None if found is None else Ed25519PublicKey.from_public_bytes(found)


def verifier_of(directory):
    return HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys(directory))


class Site:
    """Verifies requests by the directories of agents, and accepts each nonce once."""

    def __init__(self, **directories):
        """Take the texts of directories by the host that publishes them."""
        self.directories = directories
        self.nonces = set()

    def publish(self, host, directory):
        self.directories[host] = directory

    def check(self, url, headers):
        """Return the keyid of a request that was received for a URL; raise InvalidSignature."""
        message = SimpleNamespace(method="GET", url=url, headers=dict(headers))
        label, agent = self._agent(message.headers)
        parts = agent.removeprefix("https://")
        result = verifier_of(self.directories[parts]).verify(
            message,
            expect_tag=TAG,
            max_age=timedelta(minutes=5),
            require_components=("@authority", f'"signature-agent";key="{label}"'),
        )
        (found,) = result
        if found.nonce is None or found.nonce in self.nonces:
            raise InvalidSignature("the nonce was seen before")
        self.nonces.add(found.nonce)
        if found.parameters["expires"] - found.parameters["created"] > 600:
            raise InvalidSignature("valid for too long")
        return found.parameters["keyid"]

    @staticmethod
    def _agent(headers):
        if "Signature-Agent" not in headers:
            raise InvalidSignature("unsigned")
        label, _, agent = headers["Signature-Agent"].partition("=")
        return label, json.loads(agent)


@contextmanager
def clock(seconds):
    """Let the clock of the verifier be ahead by some seconds."""

    class Late(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=seconds)

    module = SimpleNamespace(
        datetime=Late, timedelta=timedelta, timezone=signatures.datetime.timezone
    )
    with patch.object(signatures, "datetime", module):
        yield
