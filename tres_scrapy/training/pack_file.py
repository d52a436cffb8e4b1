"""Writing of the files of a topic pack (P 3.3)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import tomli_w

from tres_scrapy.page.file import whole_file
from tres_scrapy.topic.shipped import TOPIC_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tres_scrapy.topic.classifier import Classifier


def check_place(vectors: Path, directory: Path) -> Path:
    """Return the vectors' path; raise ValueError if it is not beside the pack's directory."""
    models = directory.resolve().parent
    if not vectors.resolve().is_relative_to(models):
        msg = (
            f"vectors {str(vectors)!r} must lie in {directory.parent}/ or a folder there: "
            "copy them, or choose another --output"
        )
        raise ValueError(msg)
    return vectors


def write_pack(directory: Path, facts: Mapping[str, Any], classifier: Classifier) -> None:
    """Write facts and weights as a pack; the same input gives the same bytes.

    A process killed at any moment leaves the old pack or the new one. Raise TypeError if a fact
    cannot be written as TOML.
    """
    from safetensors.torch import save  # noqa: PLC0415 - the crawler's process does without PyTorch

    weights = save(dict(classifier.tensors()))
    digest = hashlib.sha256(weights).hexdigest()
    name = f"classifier-{digest[:12]}.safetensors"
    model = facts["classifier"] | {"file": name, "sha256": digest}
    # source names come from file names, which may not be valid UTF-8
    encoded = tomli_w.dumps({**facts, "classifier": model}).encode("utf-8", "replace")
    directory.mkdir(parents=True, exist_ok=True)
    with whole_file(directory / name) as file:
        file.write(weights)
    with whole_file(directory / TOPIC_FILE) as file:
        file.write(encoded)
    for old in directory.glob("classifier*.safetensors"):
        if old.name != name:
            old.unlink()
