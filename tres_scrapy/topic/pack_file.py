"""Writing of the files of a topic pack (P 3.3)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import tomli_w
from safetensors import numpy

from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tres_scrapy.links.model import LinkPrior
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


def write_pack(
    directory: Path,
    facts: Mapping[str, Any],
    classifier: Classifier,
    prior: LinkPrior | None = None,
) -> None:
    """Write facts, weights and what is known of links as a pack; the same input, the same bytes.

    A process killed at any moment leaves the old pack or the new one. Raise TypeError if a fact
    cannot be written as TOML.
    """
    from safetensors.torch import save  # noqa: PLC0415 - the crawler's process does without PyTorch

    weights = {"classifier": save(dict(classifier.tensors()))}
    if prior is not None:
        weights["links"] = numpy.save(prior._asdict())
    named = {
        name: {"file": f"{name}-{digest[:12]}.safetensors", "sha256": digest}
        for name, digest in ((name, sha256(part).hexdigest()) for name, part in weights.items())
    }
    said = {**facts, **{name: facts.get(name, {}) | file for name, file in named.items()}}
    # source names come from file names, which may not be valid UTF-8
    encoded = tomli_w.dumps(said).encode("utf-8", "replace")
    directory.mkdir(parents=True, exist_ok=True)
    for name, part in weights.items():
        with whole_file(directory / named[name]["file"]) as file:
            file.write(part)
    with whole_file(directory / TOPIC_FILE) as file:
        file.write(encoded)
    kept = {each["file"] for each in named.values()}
    for name in ("classifier", "links"):
        for old in directory.glob(f"{name}*.safetensors"):
            if old.name not in kept:
                old.unlink()
