"""What is refused before a process starts."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from conftest import command
from sharded_process import words

pytest.importorskip("ray", reason="needs the extra cluster")
from tres_scrapy.cluster import actor, start
from tres_scrapy.cluster.plan import Plan
from tres_scrapy.cluster.register import Register
from tres_scrapy.cluster.snapshot import begin_run
from tres_scrapy.cluster.start import crawl
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.identity import KeyFolder
from tres_scrapy.run.identity import identity_of
from tres_scrapy.url.message import TresError

FOOD = {"topic": "food", "web": "synthetic"}
IDENTITY = identity_of(Config.from_settings({"TRES_TOPIC": "food", "TRES_WEB": "synthetic"}))


@pytest.fixture
def job(tmp_path):
    """Return the folder of a crawl of food in two shards."""
    Register(tmp_path / "job", 2, IDENTITY).close()
    return tmp_path / "job"


@pytest.mark.parametrize(
    ("shards", "arguments", "complaint"),
    [
        (3, FOOD, "holds a crawl with shards '2', not '3': give another directory"),
        (2, {**FOOD, "topic": "sports"}, "with topic 'food', not 'sports'"),
    ],
)
def test_another_crawl_is_refused(job, shards, arguments, complaint):
    with pytest.raises(TresError, match=complaint):
        crawl(Plan(job, shards, arguments=arguments))


def test_job_in_use_is_refused(job, monkeypatch, caplog):
    monkeypatch.setattr(actor, "FREE", 0.1)
    used = Register(job, 2, IDENTITY)
    with pytest.raises(TresError, match="another process is using"):
        crawl(Plan(job, 2, arguments=FOOD))
    used.close()
    assert caplog.text.count("waiting up to") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"topic": "food"}, "no seed"),
        ({"topic": "food", "seed": "https://real.org/"}, "must have a contact: add"),
        (
            {**FOOD, "max_per_domain": "5_2", "pages": "9"},
            "a crawl in shards needs one number, or none",
        ),
        ({**FOOD, "answers": "mine.txt"}, "^-a answers=: a crawl in shards cannot be answered"),
    ],
)
def test_unfit_option_is_refused(tmp_path, arguments, complaint):
    with pytest.raises(ConfigError, match=complaint):
        crawl(Plan(tmp_path / "job", 2, arguments=arguments))
    assert not (tmp_path / "job").exists()


def test_missing_package_is_said_first(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    plan = Plan(tmp_path / "job", 2, arguments={**FOOD, "fields": "date"})
    with pytest.raises(ConfigError, match="fields=markdown or date needs trafilatura: "):
        crawl(plan)
    assert not (tmp_path / "job").exists()


def test_key_of_others_is_refused(tmp_path):
    key = KeyFolder(tmp_path).add("https://crawler.test")
    key.chmod(0o644)
    plan = Plan(tmp_path / "job", 2, arguments=FOOD | {"identity": str(key)})
    with pytest.raises(TresError, match="chmod 600"):
        crawl(plan)
    assert not (tmp_path / "job").exists()


def test_plan_has_the_place_of_the_key_alone(tmp_path, monkeypatch):
    """Shards run in other folders: the path is whole, and the key stays in its file."""
    monkeypatch.chdir(tmp_path)
    key = KeyFolder(Path("identity")).add("https://crawler.test")
    plan = Plan(tmp_path / "job", 2, arguments=FOOD | {"identity": str(key)})
    arguments = start._arguments(plan, None)
    assert arguments["identity"] == str(tmp_path / key)
    assert json.loads(key.read_text())["d"] not in str(arguments)


@pytest.mark.parametrize("name", ["domain_budgets", "site_rules"])
def test_plan_has_the_whole_paths_of_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("sites.txt").write_text("a.test 5\n")
    plan = Plan(tmp_path / "job", 2, arguments=FOOD | {name: "sites.txt"})
    assert start._arguments(plan, None)[name] == str(tmp_path / "sites.txt")


def test_jobdir_of_one_process_is_refused(tmp_path):
    (tmp_path / "tres.run").touch()
    with pytest.raises(ConfigError, match="is the JOBDIR of a crawl without shards"):
        crawl(Plan(tmp_path, 2, arguments=FOOD))


def test_file_is_no_job(tmp_path):
    (tmp_path / "job").touch()
    with pytest.raises(ConfigError, match="is a file: give a folder"):
        crawl(Plan(tmp_path / "job", 2, arguments=FOOD))


@pytest.mark.parametrize(
    ("snapshots", "said"),
    [
        ("foo://x", "Protocol not known: foo"),
        ("file:///proc/none", "/proc/none"),
        ("file://{}/used", "holds a crawl with topic 'sports', not 'food': give another URL"),
    ],
)
def test_unfit_snapshots_are_refused(tmp_path, snapshots, said):
    begin_run(f"file://{tmp_path}/used", {"topic": "sports"}, "")
    plan = Plan(tmp_path / "job", 2, arguments=FOOD, snapshots=snapshots.format(tmp_path))
    with pytest.raises(TresError, match=said):
        crawl(plan)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("$NO_DISK_HERE/job", "this node does not have that environment variable"),
        ("$EMPTY/job", "must begin with / on each node"),
    ],
)
def test_unfit_folder_of_a_node_is_refused(tmp_path, monkeypatch, job, said):
    monkeypatch.setenv("EMPTY", "here")
    plan = Plan(Path(job), 2, arguments=FOOD, snapshots=f"file://{tmp_path}/store")
    with pytest.raises(TresError, match=said):
        crawl(plan)


def test_folder_of_a_node_has_its_variables(monkeypatch):
    monkeypatch.setenv("DISK", "/nodes/a")
    plan = Plan(Path("/driver"), 2, 10, {}, {}, {}, snapshots="s3://x", template="$DISK/job")
    assert plan.here().folder(1) == Path("/nodes/a/job/shard-1")
    assert Plan(Path("/driver"), 2, 10, {}, {}, {}).here().job == Path("/driver")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--policy", "random"], "a crawl in shards needs --policy tres"),
        (["-s", "JOBDIR=x"], "a crawl in shards has --job"),
        (["-s", "CONCURRENT_REQUESTS=x"], "CONCURRENT_REQUESTS 'x': must be a number"),
        (["-s", "LOG_LEVEL=loud"], "LOG_LEVEL 'loud': must be one of CRITICAL"),
        (["--dashboard", "1", "--no-record"], "it needs --record"),
        (["--metrics-port", "70000"], "metrics-port"),
        (["--snapshot-interval", "0"], "'--snapshot-interval': 0 is not in the range x>=1"),
        (["--snapshot-interval", "nan"], "'nan' is not a valid integer"),
    ],
)
def test_wrong_option_is_one_line(tmp_path, monkeypatch, capsys, more, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(start, "_web", lambda config: nullcontext())
    with pytest.raises(SystemExit) as ended:
        command(*words(*more))
    assert said in f"{ended.value}{capsys.readouterr().err}"
