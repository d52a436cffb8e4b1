import inspect
from types import SimpleNamespace

from scrapy.core.engine import ExecutionEngine

from tres_scrapy.downloader.engine import wake


def test_wake_schedules_next_request():
    calls = []
    slot = SimpleNamespace(nextcall=SimpleNamespace(schedule=lambda: calls.append("now")))
    wake(SimpleNamespace(_slot=slot))
    assert calls == ["now"]


def test_closed_engine_stays_asleep():
    wake(SimpleNamespace(_slot=None))


def test_scrapy_still_has_the_slot():
    assert "self._slot" in inspect.getsource(ExecutionEngine)
