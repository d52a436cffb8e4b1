"""Items that JOBDIR keeps until they are exported."""

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from scrapy import Field, Item

from tres_scrapy.items import dump_item, load_item
from tres_scrapy.run.job_file import reading
from tres_scrapy.url.message import TresError


class Dish(Item):
    name = Field()


@dataclass
class Guest:
    name: str
    dishes: list[str]


@pytest.mark.parametrize(
    "item", [{"name": "søup", "tags": ["a", None]}, Dish(name="soup"), Guest("Ada", ["soup"])]
)
def test_item_returns_unchanged(item):
    kept = load_item(dump_item(item))
    assert kept == item
    assert type(kept) is type(item)


@pytest.mark.parametrize(
    "item", [{"at": datetime(2026, 1, 1, tzinfo=UTC)}, {"pair": (1, 2)}, "no item", {"a": "\ud800"}]
)
def test_what_json_cannot_hold_is_refused(item):
    with pytest.raises((TypeError, ValueError)):
        dump_item(item)


def test_module_to_import_is_named(monkeypatch):
    text = dump_item(Guest("Ada", []))
    monkeypatch.delitem(sys.modules, __name__)
    expected = f"^JOBDIR holds .* 'Guest' that is not loaded yet: import '{__name__}'"
    with pytest.raises(TresError, match=expected), reading():
        load_item(text)


def test_long_names_are_cut():
    with pytest.raises(TresError) as error:
        load_item(json.dumps([f"{'m' * 5000}:{'c' * 5000}", {}]))
    assert len(str(error.value)) < 350


@pytest.mark.parametrize("name", ["this:s", "os:system", "subprocess:Popen", "dict", "builtins:"])
def test_text_names_no_code_to_run(name, capsys):
    sys.modules.pop("this", None)
    with pytest.raises((ValueError, LookupError, AttributeError, TresError)):
        load_item(json.dumps([name, {"args": "true"}]))
    assert "this" not in sys.modules
