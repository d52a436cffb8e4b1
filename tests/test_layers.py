import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tres_scrapy"
# From the bottom to the top: a file imports from its own room and from rooms to its left.
ROOMS = (
    *("items", "settings", "url", "config", "page", "webs", "frontier", "topic", "crawl", "agent"),
    *("policies", "job", "report", "training", "live", "downloader", "extensions", "export"),
    *("middlewares", "scheduler", "addon", "spiders", "refresh", "surface", "bench", "commands"),
)
LOOSE = {"__init__.py", "addon.py", "items.py", "scheduler.py", "settings.py"}
PURE = {
    *("url", "page", "webs", "frontier", "topic", "crawl", "agent", "policies", "job", "training"),
    *("report", "refresh", "surface"),
}
# Two programs have a room each, in which these files depend on Scrapy.
ADAPTERS = {
    *("refresh/spider.py", "refresh/pipeline.py", "refresh/settings.py"),
    *("surface/spider.py", "surface/settings.py"),
}
# The parts that each program has.
SHARED_NAMES = {"__init__.py", "pipeline.py", "settings.py", "simulation.py", "spider.py"}
ADAPTER_ROOMS = {"commands", "extensions", "middlewares", "spiders"}  # named like what they adapt
FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(file: Path):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            is_room = node.module == "tres_scrapy"
            yield from (f"{node.module}.{alias.name}" for alias in node.names if is_room)
            yield from () if is_room else (node.module,)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_run_one_way(file):
    own = room_of(file)
    for module in imported_modules(file):
        root, _, rest = module.partition(".")
        if root in {"scrapy", "twisted"}:
            assert own not in PURE or name_of(file) in ADAPTERS
        elif root == "tres_scrapy" and own != "__init__":
            room = rest.split(".")[0]
            assert ROOMS.index(room) <= ROOMS.index(own), f"{name_of(file)} imports {module}"


def test_root_holds_five_files():
    assert {path.name for path in PACKAGE.glob("*.py")} == LOOSE
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/__init__.py")}
    assert folders | {name.removesuffix(".py") for name in LOOSE} == {*ROOMS, "__init__"}


def test_file_names_are_unique():
    places = defaultdict(list)
    for file in FILES:
        if file.name not in SHARED_NAMES and room_of(file) not in ADAPTER_ROOMS:
            places[file.name].append(name_of(file))
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_class_names_are_unique():
    places = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(file))
    del places["Command"]  # the class name that Scrapy expects in each command module
    assert not {name: found for name, found in places.items() if len(found) > 1}
