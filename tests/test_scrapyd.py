"""The project as an egg in a real scrapyd: deployed, scheduled, cancelled, resumed."""

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from time import monotonic, sleep
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from conftest import PROJECT, stats_of

pytestmark = pytest.mark.slow

pytest.importorskip("scrapyd", reason="scrapyd is not installed: pip install '.[scrapyd]'")
pytest.importorskip("scrapyd_client", reason="scrapyd-client is not installed")

PATIENCE = 600  # seconds for each step: the machine may be busy
SERVER = """
[scrapyd]
http_port = {port}
poll_interval = 0.2
items_dir = items
jobs_dir = jobs
"""
CLIENT = """
[settings]
default = tres_scrapy.settings

[deploy]
url = http://127.0.0.1:{port}/
project = tres
"""
# The package may be installed here, but the jobs must find it only in the egg.
ELSEWHERE = """
import sys
from pathlib import Path
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]
sys.path[:] = [each for each in sys.path if not Path(each, "tres_scrapy").exists()]
"""


class Server:
    """A scrapyd on a free port of this machine."""

    def __init__(self, directory):
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = directory
        (directory / "scrapyd.conf").write_text(SERVER.format(port=self.port))
        (directory / "sitecustomize.py").write_text(ELSEWHERE)
        self.environment = os.environ | {"PYTHONPATH": str(directory)}
        with (directory / "scrapyd.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scrapyd"],
                cwd=directory,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def get(self, path):
        with urlopen(f"http://127.0.0.1:{self.port}/{path}") as answer:
            return answer.read().decode()

    def post(self, path, *data):
        body = urlencode(data).encode()
        with urlopen(f"http://127.0.0.1:{self.port}/{path}", body) as answer:
            facts = json.load(answer)
        assert facts["status"] == "ok", facts
        return facts

    def schedule(self, job, pages):
        arguments = {"topic": "food", "pages": pages, "random_seed": 1}
        settings = [("setting", "TRES_WEB=synthetic"), ("setting", "LOG_LEVEL=INFO")]
        what = {"project": "tres", "spider": "tres", "jobid": job} | arguments
        assert self.post("schedule.json", *what.items(), *settings)["jobid"] == job

    def jobs(self, state):
        return [job["id"] for job in json.loads(self.get("listjobs.json?project=tres"))[state]]

    def items(self, job):
        try:
            return [json.loads(line) for line in self.get(f"items/tres/tres/{job}.jl").splitlines()]
        except (URLError, ValueError):  # not started, or a line is being written
            return []

    def log(self, job):
        return self.get(f"logs/tres/tres/{job}.log")

    def wait(self, condition):
        end = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < end, (self.directory / "scrapyd.log").read_text()
            sleep(0.1)

    def listens(self):
        assert self.process.poll() is None, (self.directory / "scrapyd.log").read_text()
        try:
            return self.get("daemonstatus.json")
        except URLError:
            return None


@pytest.fixture
def server(tmp_path):
    directory = tmp_path / "server"
    directory.mkdir()
    server = Server(directory)
    with server.process:
        try:
            server.wait(server.listens)
            yield server
        finally:
            server.process.terminate()


@pytest.fixture
def project(tmp_path, server):
    """Copy the project, so that building an egg leaves no files in the checkout."""
    project = tmp_path / "project"
    for name in ("tres_scrapy", "models"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / name, project / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, project)
    (project / "scrapy.cfg").write_text(CLIENT.format(port=server.port))
    settings = project / "tres_scrapy" / "settings.py"
    settings.write_text(settings.read_text().replace('BOT_NAME = "tres"', 'BOT_NAME = "egg"'))
    return project


def test_scrapyd_runs_and_resumes(server, project):
    deployed = subprocess.run(
        [sys.executable, "-m", "scrapyd_client.deploy"],
        cwd=project,
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert deployed.returncode == 0, deployed.stderr
    assert json.loads(deployed.stdout)["status"] == "ok"

    server.schedule("long", pages=100_000)
    server.wait(lambda: len(server.items("long")) >= 3)
    assert (
        server.post("cancel.json", ("project", "tres"), ("job", "long"))["prevstate"] == "running"
    )
    server.wait(lambda: "long" in server.jobs("finished"))
    log = server.log("long")
    assert "'finish_reason': 'shutdown'" in log
    assert "(bot: egg)" in log
    assert "Traceback" not in log
    first, *_ = items = server.items("long")
    assert {"url", "title", "probability", "q_value"} <= first.keys()
    kept = [item["url"] for item in items]
    assert f"'item_scraped_count': {len(kept)}" in log

    pages = stats_of(log)["tres/pages"]
    server.schedule("long", pages=pages + 10)  # the same job is resumed
    server.wait(lambda: "'finish_reason': 'page_limit'" in server.log("long"))
    server.wait(lambda: not server.jobs("running"))
    assert f"Resuming after {pages} pages" in server.log("long")
    urls = [item["url"] for item in server.items("long")]
    assert urls[: len(kept)] == kept
    assert len(set(urls)) == len(urls) > len(kept)
