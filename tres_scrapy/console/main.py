"""The program `tres`, which starts even where packages are missing."""

from __future__ import annotations

import sys

from tres_scrapy.commands.diagnosis import diagnose, first_line


def main() -> None:
    """Run the command that the command line names; without the packages for it, only `doctor`."""
    words = sys.argv[1:]
    try:
        from tres_scrapy.console.command_line import run_line  # noqa: PLC0415 - it may fail
    except (ImportError, OSError) as error:
        if words == ["doctor"]:
            sys.exit(diagnose())
        sys.exit(f"tres: {first_line(error)}: run `tres doctor`")
    run_line(*words)
