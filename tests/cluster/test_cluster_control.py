import pytest

from tres_scrapy.cluster.view import ClusterControl
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.live.steering import ControlError


class Shards:
    def __init__(self):
        self.told = []
        self.ends = False

    def command(self, name, value=""):
        self.told.append((name, value))

    def stop(self):
        self.told.append(("stop", ""))


def config(**more):
    return Config.from_settings({"TRES_TOPIC": "food", "TRES_MAX_PER_DOMAIN": "10", **more})


@pytest.fixture
def shards():
    return Shards()


@pytest.fixture
def control(shards):
    return ClusterControl(shards, lambda: shards.ends, config())


def test_pause_and_resume_take_turns(shards, control):
    assert control.state == "running"
    with pytest.raises(ControlError, match="The crawl is running"):
        control.resume()
    assert control.pause().startswith("Paused")
    assert control.state == "paused"
    with pytest.raises(ControlError, match="The crawl is paused"):
        control.pause()
    control.resume()
    assert control.state == "running"
    assert shards.told == [("pause", ""), ("resume", "")]


def test_stop_ends_the_crawl(shards, control):
    control.stop()
    assert control.state == "ending"
    for ask in (control.stop, control.pause, control.resume):
        with pytest.raises(ControlError, match="The crawl is ending"):
            ask()
    assert shards.told == [("stop", "")]


def test_ended_crawl_takes_no_command(shards, control):
    shards.ends = True
    with pytest.raises(ControlError, match="The crawl is ending"):
        control.add_seed("https://example.org/")
    assert not shards.told


def test_seeds_are_passed_on(shards, control):
    said = control.add_seed("https://example.org, https://EXAMPLE.com/a#b")
    assert said == "Next: https://example.org/, https://example.com/a."
    assert shards.told == [("add_seed", "https://example.org/,https://example.com/a")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("@seeds.txt", "read only at the start"),
        ("nonsense", "must hold http"),
        ("http://10.0.0.1/", "not on the public internet"),
        ("x" * 9000, "Too long"),
    ],
)
def test_bad_seed_is_refused(shards, control, text, complaint):
    with pytest.raises(ControlError, match=complaint):
        control.add_seed(text)
    assert not shards.told


def test_private_seed_may_be_allowed(shards):
    control = ClusterControl(shards, lambda: False, config(TRES_PRIVATE_ADDRESSES="1"))
    control.add_seed("http://10.0.0.1/")
    assert shards.told == [("add_seed", "http://10.0.0.1/")]


@pytest.mark.parametrize(("text", "value"), [("7", "7"), (" none ", "none"), ("3_3", "3")])
def test_max_is_changed(shards, control, text, value):
    assert control.change_max(text) == f"MAX is {value} from now on."
    assert str(control.cap or "none") == value
    assert shards.told == [("change_max", value)]


@pytest.mark.parametrize("text", ["5_2", "0", "many", "9" * 9000])
def test_bad_max_is_refused(shards, control, text):
    with pytest.raises(ControlError, match=r"MAX|Too long"):
        control.change_max(text)
    assert not shards.told
    assert control.cap == Cap(10, 10)
