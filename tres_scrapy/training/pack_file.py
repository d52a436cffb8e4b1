"""The files of a topic pack as training writes them (P 3.3)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import tomli_w
from safetensors.torch import save

from tres_scrapy.page.file import whole_file
from tres_scrapy.topic.pack import TOPIC_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tres_scrapy.topic.classifier import Classifier


def check_place(vectors: Path, directory: Path) -> Path:
    """Return the vectors' path; raise ValueError if a pack in the directory cannot name it."""
    models = directory.resolve().parent
    if not vectors.resolve().is_relative_to(models):
        msg = (
            f"vectors {str(vectors)!r} must lie in {directory.parent}/ or a folder there, beside "
            "the packs that name them: copy them, or choose another --output"
        )
        raise ValueError(msg)
    return vectors


def write_pack(directory: Path, facts: Mapping[str, Any], classifier: Classifier) -> None:
    """Write facts and weights as a pack; the same input gives the same bytes.

    A process killed at any moment leaves the old pack or the new one. A TypeError says what TOML
    cannot hold.
    """
    weights = save(dict(classifier.tensors()))
    digest = hashlib.sha256(weights).hexdigest()
    name = f"classifier-{digest[:12]}.safetensors"
    model = facts["classifier"] | {"file": name, "sha256": digest}
    # the name of a source, which a file gave it, may hold what has no UTF-8 form
    encoded = tomli_w.dumps({**facts, "classifier": model}).encode("utf-8", "replace")
    directory.mkdir(parents=True, exist_ok=True)
    with whole_file(directory / name) as file:
        file.write(weights)
    with whole_file(directory / TOPIC_FILE) as file:
        file.write(encoded)
    for old in directory.glob("classifier*.safetensors"):
        if old.name != name:
            old.unlink()
