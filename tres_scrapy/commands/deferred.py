"""The commands as Scrapy finds them in any folder or project, once the package is installed."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar


class Deferred:
    """Stands for a command until something of it is asked for.

    Scrapy makes one of each class whatever it is asked to do, and PyTorch takes two seconds to
    import, which no other command of anyone's project should pay.
    """

    module: ClassVar[str]

    @cached_property
    def _command(self) -> Any:
        return import_module(f"tres_scrapy.commands.{self.module}").Command()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._command, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._command, name, value)


class BenchCommand(Deferred):
    """`scrapy tres-bench`."""

    module = "tres-bench"


class ClassifyCommand(Deferred):
    """`scrapy tres-classify`."""

    module = "tres-classify"


class ExplainCommand(Deferred):
    """`scrapy tres-explain`."""

    module = "tres-explain"


class ReportCommand(Deferred):
    """`scrapy tres-report`."""

    module = "tres-report"


class TrainCommand(Deferred):
    """`scrapy tres-train`."""

    module = "tres-train"


class VectorsCommand(Deferred):
    """`scrapy tres-vectors`."""

    module = "tres-vectors"


class WebCommand(Deferred):
    """`scrapy tres-web`."""

    module = "tres-web"
