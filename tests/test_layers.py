"""The rooms of the package, and who may import whom."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "tres_scrapy"
# From the bottom to the top: a file imports from its own room and from rooms before it.
ROOMS = (
    "url",
    "config",
    "rights",
    "page",
    "links",
    "frontier",
    "topic",
    "agent",
    "crawl",
    "run",
    "report",
    "answerer",
    "live",
    "items",
    "settings",
    "downloader",
    "extensions",
    "export",
    "middlewares",
    "scheduler",
    "addon",
    "spiders",
    "cli",
)
GUESTS = (  # only what is named here knows them
    "training",
    "cluster",
    "refresh",
    "surface",
    "lab",
    "publish",
    "forget",
    "mcp_server",
)
PURE = {*ROOMS[: ROOMS.index("live")]}
ROOT = {"__init__.py", "addon.py", "items.py", "scheduler.py", "settings.py"}
FILES = sorted(PACKAGE.rglob("*.py"))
# The command of a guest is a file of cli/, which goes with the guest.
COMMANDS = {
    "web.py": {"lab"},
    "train.py": {"training"},
    "vectors.py": {"training"},
    "cluster.py": {"cluster"},
    "refresh.py": {"refresh"},
    "surface.py": {"surface"},
    "publish.py": {"publish"},
    "forget.py": {"forget"},
    "distrust.py": {"forget"},
    "mcp.py": {"mcp_server"},
}


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(file: Path, walk=ast.walk):
    for node in walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            is_room = node.module == "tres_scrapy"
            yield from (f"{node.module}.{alias.name}" for alias in node.names if is_room)
            yield from () if is_room else (node.module,)


def imported_rooms(file: Path):
    for module in imported_modules(file):
        root, _, rest = module.partition(".")
        if root == "tres_scrapy":
            yield rest.split(".")[0]


def nodes_of(tree: ast.AST):
    """Yield the nodes of a tree, without what is only imported to check types."""
    yield tree
    if not (isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(tree):
            yield from nodes_of(child)


def rooms_allowed(file: Path) -> set[str]:
    """Return the rooms that a file may import."""
    room = room_of(file)
    if room == "lab":  # it measures the other guests too
        return {*ROOMS, *GUESTS} - {"cli"}
    if room in GUESTS:
        return {*ROOMS, room} - {"cli"}
    guests = COMMANDS.get(file.name, set()) if room == "cli" else set()
    return {*ROOMS[: ROOMS.index(room) + 1], *guests}


def test_imports_run_one_way():
    wrong = [
        f"{name_of(file)} imports {room}"
        for file in FILES
        if name_of(file) != "__init__.py"
        for room in {*imported_rooms(file)} - rooms_allowed(file)
    ]
    assert not wrong


def test_pure_rooms_know_no_framework():
    frameworks = {"scrapy", "twisted"}
    wrong = [
        name_of(file)
        for file in FILES
        if room_of(file) in PURE
        and frameworks & {module.partition(".")[0] for module in imported_modules(file, nodes_of)}
    ]
    assert not wrong


def test_root_holds_five_files():
    assert {path.name for path in PACKAGE.glob("*.py")} == ROOT
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders | {name.removesuffix(".py") for name in ROOT} >= {*ROOMS} - {"__init__"}
    assert folders <= {*ROOMS, *GUESTS}


def test_files_are_short():
    lines = {name_of(file): file.read_text(encoding="utf-8").count("\n") for file in FILES}
    assert not {name: count for name, count in lines.items() if count > 400}
