import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tres_scrapy"
# From the bottom to the top: a file imports from its own room and from rooms on lower floors.
FLOORS = (
    *(("url",), ("config",), ("page",), ("links",), ("frontier", "topic", "webs"), ("crawl",)),
    ("agent",),
    *(("policies",), ("job",), ("report",), ("training", "live"), ("items", "settings")),
    *(("downloader",), ("extensions",), ("export",), ("middlewares",), ("scheduler",)),
    *(
        ("addon",),
        ("spiders",),
        ("cluster",),
        ("refresh", "surface", "bench"),
        ("commands",),
        ("console",),
    ),
)
ROOMS = tuple(room for floor in FLOORS for room in floor)
LOOSE = {"__init__.py", "addon.py", "items.py", "scheduler.py", "settings.py"}
PURE = {
    *("url", "config", "page", "links", "webs", "frontier", "topic", "crawl", "agent", "policies"),
    *("job", "report", "training", "refresh", "surface"),
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


def floor_of(room: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


def nodes_of(tree: ast.AST):
    """Yield the nodes of a tree, without what is only imported to check types."""
    yield tree
    if not (isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(tree):
            yield from nodes_of(child)


def imported_modules(file: Path, walk=ast.walk):
    for node in walk(ast.parse(file.read_text(encoding="utf-8"))):
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
    if own == "__init__":
        return
    for module in imported_modules(file):
        root, _, rest = module.partition(".")
        if root == "tres_scrapy":
            room = rest.split(".")[0]
            is_lower = floor_of(room) < floor_of(own)
            assert room == own or is_lower, f"{name_of(file)} imports {module}"


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) in PURE], ids=name_of)
def test_pure_rooms_know_no_framework(file):
    roots = {module.partition(".")[0] for module in imported_modules(file, nodes_of)}
    assert name_of(file) in ADAPTERS or not roots & {"scrapy", "twisted"}


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
