import subprocess
import sys
import tomllib
from importlib import import_module

import pytest
from conftest import PROJECT
from scrapy.utils.misc import load_object

from tres_scrapy.commands.deferred import Deferred

ENTRIES = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]
COMMANDS = ENTRIES["scrapy.commands"]


def test_every_command_has_its_entry():
    files = (PROJECT / "tres_scrapy" / "commands").glob("tres-*.py")
    assert set(COMMANDS) == {file.stem for file in files}


@pytest.mark.parametrize("name", COMMANDS)
def test_entry_stands_for_its_command(name):
    entry = load_object(COMMANDS[name].replace(":", "."))()
    command = import_module(f"tres_scrapy.commands.{name}").Command()
    assert isinstance(entry, Deferred)
    assert entry.short_desc() == command.short_desc()
    assert entry.requires_crawler_process is False
    entry.settings = {"LOG_LEVEL": "INFO"}
    assert entry._command.settings == {"LOG_LEVEL": "INFO"}


@pytest.mark.slow
def test_other_commands_skip_pytorch():
    classes = ", ".join(entry.partition(":")[2] for entry in COMMANDS.values())
    program = f"import sys; from tres_scrapy.commands.deferred import {classes}; " + "".join(
        f"{name.strip()}(); " for name in classes.split(",")
    )
    program += "sys.exit('torch' in sys.modules or 'tres_scrapy.config.config' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=False).returncode == 0


@pytest.mark.slow
def test_crawler_skips_pytorch():
    """The judge's process alone loads it."""
    program = (
        "import sys; from tres_scrapy import addon, scheduler; "
        "from tres_scrapy.middlewares import reward; from tres_scrapy.spiders import tres; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=False).returncode == 0
