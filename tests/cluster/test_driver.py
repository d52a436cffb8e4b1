import os
import socket
from contextlib import closing
from types import SimpleNamespace

import pytest

ray = pytest.importorskip("ray", reason="needs the extra cluster")
from ray.exceptions import RayError  # noqa: E402 - it needs ray

from tres_scrapy.cluster import driver as module  # noqa: E402 - it needs ray
from tres_scrapy.cluster.coordinator import Overview  # noqa: E402 - as above
from tres_scrapy.cluster.driver import TOKEN, Driver, require_cluster  # noqa: E402 - as above
from tres_scrapy.cluster.message import Status  # noqa: E402 - as above
from tres_scrapy.cluster.plan import Plan  # noqa: E402 - as above
from tres_scrapy.url.message import TresError  # noqa: E402 - as above


@pytest.fixture
def tokens(monkeypatch, tmp_path):
    """Start Ray in vain with an address; return the tokens that it is given."""
    found = []

    def init(*arguments, **more):
        found.append(os.environ.get(TOKEN))
        raise RuntimeError("no room\nmore")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv(TOKEN, "")
    monkeypatch.delenv(TOKEN)

    def start(address=None):
        plan = Plan(tmp_path, 2, 10, {}, {}, {})
        with pytest.raises(TresError, match=r"Ray does not start: no room$"):
            Driver(plan, None, address).run()
        return found

    return start


def test_local_ray_has_a_secret_token(tokens):
    (token,) = tokens()
    assert len(token) == 64


def test_users_token_is_kept(tokens, monkeypatch):
    monkeypatch.setenv(TOKEN, "mine")
    assert tokens() == ["mine"]


def test_cluster_has_its_own_token(tokens):
    assert tokens("auto") == [None]


def test_coordinator_that_starts_again_hides_nothing(monkeypatch, tmp_path):
    """It knows that the crawl ends, but no status: shards still send their last snapshots."""
    known = Overview({0: Status(0, 7)}, {0: 0.1}, 10, "page_limit", "", 1)
    empty = Overview({}, {}, 10, "page_limit", "", 1)
    ended = iter([False, False, True, True])

    def ask(name, method, *arguments, **options):
        return next(ended) if method == "has_ended" else next(overviews)

    monkeypatch.setattr(module, "LOOK", 0)
    driver = Driver(Plan(tmp_path, 1, 10, {}, {}, {}), None)
    driver._actors, driver._ask = {"shard-0": None}, ask
    overviews = iter([known, empty, empty, empty])
    driver._watch()
    driver._close()
    assert next(ended, None) is None  # it waited
    assert driver._overview is known
    driver = Driver(Plan(tmp_path, 1, 10, {}, {}, {}), None)
    driver._actors, driver._ask = {"shard-0": None}, ask
    ended, overviews = iter([False]), iter([empty])
    driver._watch()  # a crawl that never began
    assert driver._overview is empty


def test_cluster_that_is_not_there_is_one_line():
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))  # it does not listen
        address = f"ray://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(TresError, match=f"no Ray cluster answers at {address}: "):
            require_cluster(address)
    with pytest.raises(TresError, match=r"answers at a\.\.b:80: "):
        require_cluster("a..b:80")


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (
            "It died:\n  File x\ntres_scrapy.url.message.TresError: --job a: it must be shared\n",
            "--job a: it must be shared",
        ),
        ("The actor died: Error: none", "The actor died: Error: none"),
    ],
)
def test_actor_that_cannot_start_is_one_line(monkeypatch, tmp_path, says, said):
    def get(call):
        raise RayError(says)

    monkeypatch.setattr(ray, "get", get)
    driver = Driver(Plan(tmp_path, 2, 10, {}, {}, {}), None, None)
    driver._actors["coordinator"] = SimpleNamespace(__ray_ready__=SimpleNamespace(remote=int))
    with pytest.raises(TresError) as raised:
        driver._check("coordinator")
    assert str(raised.value) == said
