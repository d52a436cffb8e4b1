"""A `python` that has loaded the large libraries already: each run is a fork of one process.

A short crawl spends most of its time on imports. `serve` loads the libraries and TRES, and waits.
The program that `Interpreter` writes looks like `python`: it passes its arguments, environment,
directory, open files and signals to a fork of the server and ends as the fork ends. Forks share
the server's hash seed and allocator, and end without freeing their objects: tests of these need a
new process.
"""

from __future__ import annotations

import array
import atexit
import fcntl
import gc
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType
from typing import NoReturn

LIBRARIES = (  # that the modules of TRES do not load
    "aiohttp.web",
    "platformdirs.unix",
    "safetensors.torch",
    "scrapy.extensions.corestats",
    "scrapy.extensions.telnet",
    "torch._dynamo",
    "warcio",
)
PACKAGES = ("scrapy.commands", "scrapy.downloadermiddlewares", "scrapy.spidermiddlewares")
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
CLIENT = """#!{python} -IS
import array, json, os, resource, signal, socket, sys
arguments = sys.argv[1:]
if arguments[:1] == ["-B"]:  # multiprocessing hands on that no bytecode is to be written
    del arguments[0]
if not arguments or arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
    os.execv({python!r}, [{python!r}, *arguments])
files = [int(name) for name in os.listdir("/proc/self/fd")]
files = [file for file in files if os.path.exists(f"/proc/self/fd/{{file}}")]
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
limits = [resource.getrlimit(limit) for limit in {limits}]
told = [arguments, os.getcwd(), dict(os.environ), limits, os.umask(0), files]
message = json.dumps(told).encode("utf-8", "surrogateescape")
rights = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files)
server.sendmsg([len(message).to_bytes(8)], [rights])
server.sendall(message)
pid = int.from_bytes(server.recv(8))
for file in files:
    os.close(file)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
signal.signal(signal.SIGUSR1, lambda number, _: os.kill(pid, signal.SIGKILL))
status = os.waitstatus_to_exitcode(int.from_bytes(server.recv(8)))
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.kill(os.getpid(), -status)
os._exit(status)
"""


class Process(subprocess.Popen):
    """A run of the interpreter; `kill` kills the fork and waits until it is dead."""

    def send_signal(self, sig: int) -> None:
        super().send_signal(signal.SIGUSR1 if sig == signal.SIGKILL else sig)


class Interpreter:
    """The path of the program that stands for `python`, and its server.

    The first process that asks for a directory starts the server. The server ends when the last
    process that has asked closes its Interpreter or ends.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self.path, users = directory / "python", directory / "users"
        with (directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            is_first = not users.exists()
            if is_first:
                os.mkfifo(users)
            reader = os.open(users, os.O_RDONLY | os.O_NONBLOCK)
            self._user = os.open(users, os.O_WRONLY)
            try:
                if is_first:
                    self._start(str(directory / "socket"), reader)
            finally:
                os.close(reader)

    def _start(self, address: str, users: int) -> None:
        self.path.write_text(CLIENT.format(python=sys.executable, address=address, limits=LIMITS))
        self.path.chmod(0o755)
        command = [sys.executable, __file__, address, str(self.path)]
        environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
        subprocess.run(command, stdin=users, env=environment, start_new_session=True, check=True)

    def close(self) -> None:
        """Say that this process no longer uses the server."""
        os.close(self._user)


def serve(address: str, python: str) -> None:
    """Load all, then fork for each connection in the background, while standard input is open.

    End with the forks that are left, such as a tracker whose crawl was killed.
    """
    places = sys.path[1:]
    _load()
    assert "twisted.internet.reactor" not in sys.modules, "the crawl chooses its reactor"
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(128)
    if os.fork():
        os._exit(0)  # it is ready
    while listener in select.select([sys.stdin, listener], [], [])[0]:
        client, _ = listener.accept()
        if not os.fork():
            listener.close()
            _attend(client, python, places)
            return
        client.close()
    os.killpg(0, signal.SIGKILL)


def _load() -> None:
    """Load what a crawl loads; TRES of the checkout that is tested."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    for name in LIBRARIES:
        import_module(name)
    for name in PACKAGES:
        for module in iter_modules(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    package = import_module("tres_scrapy")
    for module in walk_packages(package.__path__, "tres_scrapy."):
        if not module.name.startswith("tres_scrapy.cluster"):  # Ray is slow, few tests need it
            import_module(module.name)
    del sys.path[0]


def _attend(client: socket.socket, python: str, places: list[str]) -> None:
    """Fork once more, and end the fork with its client."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    room = socket.CMSG_SPACE(1024 * 4)
    size, ((_, _, packed),), *_ = client.recvmsg(8, room)
    passed = array.array("i")
    passed.frombytes(packed)
    message = b""
    while len(message) < int.from_bytes(size):
        message += client.recv(2**20)
    child = os.fork()
    if not child:
        client.close()
        told = json.loads(message.decode("utf-8", "surrogateescape"))
        _leave(_status_of(_become, python, places, list(passed), *told))
    for file in passed:
        os.close(file)
    client.sendall(child.to_bytes(8))
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, client], [], [])[0]:  # the client has gone
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    try:
        client.sendall(status.to_bytes(8))
    finally:
        os._exit(0)


def _status_of(program: Callable[..., None], *arguments: object) -> int:
    try:
        program(*arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        raise
    return 0


def _leave(status: int) -> NoReturn:
    """End as Python ends, except that it does not free each object of the libraries."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(status & 0xFF)


def _become(  # noqa: PLR0917
    python: str,
    places: list[str],
    passed: list[int],
    arguments: list[str],
    directory: str,
    environment: dict[str, str],
    limits: list[tuple[int, int]],
    umask: int,
    files: list[int],
) -> None:
    """Run what the arguments name, as `python` would."""
    high = max(1000, *passed, *files) + 1
    for number, file in enumerate(passed):  # move them first: the new numbers may overlap
        os.dup2(file, high + number)
    os.closerange(0, high)
    for number, file in enumerate(files):
        os.dup2(high + number, file)
    os.closerange(high, high + len(files))
    for limit, pair in zip(LIMITS, limits, strict=True):
        resource.setrlimit(limit, tuple(pair))
    os.umask(umask)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = python
    import_module("multiprocessing").set_executable(python)
    _open_streams()
    own = [
        os.path.abspath(place) for place in environment.get("PYTHONPATH", "").split(":") if place
    ]
    sys.path[:] = [*own, *places]
    sys.modules.pop("sitecustomize", None)  # that of the system, which ran before the fork
    with suppress(ModuleNotFoundError):
        import_module("sitecustomize")
    sys.modules["__main__"] = ModuleType("__main__")
    first, *rest = arguments
    if first == "-m":
        sys.path.insert(0, directory)
        sys.argv[:] = ["-m", *rest[1:]]
        if not hasattr(sys.modules.get(rest[0]), "__path__"):
            sys.modules.pop(rest[0], None)  # it becomes __main__
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
    elif first == "-c":
        sys.path.insert(0, "")
        sys.argv[:] = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), sys.modules["__main__"].__dict__)  # noqa: S102
    else:
        sys.path.insert(0, str(Path(first).absolute().parent))
        sys.argv[:] = arguments
        code = compile(Path(first).read_bytes(), first, "exec")
        sys.modules["__main__"].__file__ = first
        exec(code, sys.modules["__main__"].__dict__)  # noqa: S102


def _open_streams() -> None:
    ways = (
        ("stdin", "r", "strict"),
        ("stdout", "w", "strict"),
        ("stderr", "w", "backslashreplace"),
    )
    for number, (name, mode, errors) in enumerate(ways):
        try:
            lines = 1 if name == "stderr" or os.isatty(number) else -1
            stream = open(number, mode, lines, "utf-8", errors, closefd=False)  # noqa: SIM115
        except OSError:
            stream = None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    serve(*sys.argv[1:])
