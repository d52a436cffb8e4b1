"""A learner whose snapshots cannot be read when it starts."""

from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="needs the extra cluster")
from tres_scrapy.cluster import learner_actor
from tres_scrapy.cluster.snapshot_store import SnapshotError


class EndedError(Exception):
    """Raised where the process would end."""


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Return a function that starts a learner, for the first time or again, without storage."""

    def away(*arguments):
        raise SnapshotError("--snapshots s3://away: no answer")

    def ended(status):
        raise EndedError(status)

    def start(*, again):
        context = SimpleNamespace(was_current_actor_reconstructed=again)
        monkeypatch.setattr(learner_actor.ray, "get_runtime_context", lambda: context)
        learner_actor._open_snapshots(SimpleNamespace(), tmp_path)

    monkeypatch.setattr(learner_actor, "LearnerSnapshots", away)
    monkeypatch.setattr(learner_actor, "sleep", lambda seconds: None)
    monkeypatch.setattr(learner_actor.os, "_exit", ended)
    return start


def test_first_start_says_the_fault(start):
    with pytest.raises(SnapshotError, match="no answer"):
        start(again=False)


def test_later_start_is_tried_again(start, caplog):
    """Ray starts a process again that has ended, not one whose constructor failed."""
    with pytest.raises(EndedError):
        start(again=True)
    assert "The learner waits for its snapshot: --snapshots s3://away: no answer" in caplog.text
