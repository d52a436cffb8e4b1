"""An offline web in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.offline import WebOptions


class WebProcess:
    """Runs `tres web` until `end` is called; `proxy` is its address.

    `topics` are those of the crawl: a page on any of them is relevant.
    """

    def __init__(self, web: WebOptions, topics: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the server's
        # In its own session: else Ctrl-C would end the web before the crawl.
        self._server = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [
                sys.executable,
                "-m",
                "tres_scrapy.cli.main",
                "web",
                "--json",
                *_arguments(web, topics),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            # the same import path as here: a deployed egg is not in PYTHONPATH
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        started = self._read()
        self.proxy = f"http://127.0.0.1:{started['port']}"
        self.seeds: tuple[str, ...] = tuple(started["seeds"])
        self.notes: Sequence[str] = started["notes"]
        self.labelled: bool = started["labelled"]

    def end(self) -> dict[str, Any]:
        """Stop the web; return its own count of the fetches, by true labels."""
        if self._server.stdin is not None:
            self._server.stdin.close()
        count = self._read()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()
        self._errors.close()
        return count

    def _read(self) -> dict[str, Any]:
        """Return the next line of the server, parsed; raise ConfigError if the server ended."""
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            self._server.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["it ended without a message"]
            reason = said[-1].removeprefix("tres web: ")
            raise ConfigError(f"the offline web does not run: {reason}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _arguments(web: WebOptions, topics: Sequence[str]) -> list[str]:
    """Return the command-line arguments for the web server."""
    command = [str(web.kind), "--port", "0"]
    if topics:
        command += ["--topic", "+".join(topics)]
    if web.kind not in {"corpus", "recorded"}:
        command += ["--seed", str(web.seed)]
    files = {"--data": web.data, "--labels": web.labels, "--log": web.log}
    for option, path in files.items():
        command += [] if path is None else [option, str(path)]
    return command
