"""Entry points of the commands: Scrapy finds them in any folder once the package is installed."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar


class Deferred:
    """A proxy that imports its command at the first use.

    Scrapy creates every command on every call, and importing PyTorch takes two seconds.
    """

    module: ClassVar[str]

    @cached_property
    def _command(self) -> Any:
        return import_module(f"tres_scrapy.commands.{self.module}").Command()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._command, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._command, name, value)


class AnswerCommand(Deferred):
    """`scrapy tres-answer`."""

    module = "tres-answer"


class BenchCommand(Deferred):
    """`scrapy tres-bench`."""

    module = "tres-bench"


class ClassifyCommand(Deferred):
    """`scrapy tres-classify`."""

    module = "tres-classify"


class DoctorCommand(Deferred):
    """`scrapy tres-doctor`."""

    module = "tres-doctor"


class ExplainCommand(Deferred):
    """`scrapy tres-explain`."""

    module = "tres-explain"


class PackCommand(Deferred):
    """`scrapy tres-pack`."""

    module = "tres-pack"


class RejudgeCommand(Deferred):
    """`scrapy tres-rejudge`."""

    module = "tres-rejudge"


class ReportCommand(Deferred):
    """`scrapy tres-report`."""

    module = "tres-report"


class SeedsCommand(Deferred):
    """`scrapy tres-seeds`."""

    module = "tres-seeds"


class TrainCommand(Deferred):
    """`scrapy tres-train`."""

    module = "tres-train"


class VectorsCommand(Deferred):
    """`scrapy tres-vectors`."""

    module = "tres-vectors"


class WebCommand(Deferred):
    """`scrapy tres-web`."""

    module = "tres-web"
