import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tres_scrapy"
MAY_IMPORT = {
    "topic": {"topic"},
    "frontier": {"frontier", "domain"},
    "agent": {"agent", "frontier", "topic"},
    "policies": {"policies", "agent", "frontier", "topic"},
    "job": {"job", "schema", "policies", "agent", "frontier", "topic"},
    "refresh": {"refresh", "schema", "topic"},
    "run": {"run", "schema", "policies", "frontier", "topic"},
    "surface": {"surface", "topic"},
    "webs": {"webs", "local_server", "domain"},
    "render": {"render", "topic", "address", "local_server"},
    "archive": {"archive"},
}
FILES = [file for layer in MAY_IMPORT for file in sorted((PACKAGE / layer).glob("*.py"))]


def imported_modules(file: Path):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            yield node.module


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_pure_package_imports_no_framework_and_only_to_the_left(file):
    for module in imported_modules(file):
        root, _, rest = module.partition(".")
        assert root not in {"scrapy", "twisted"}
        if root == "tres_scrapy":
            assert rest.split(".")[0] in MAY_IMPORT[file.parent.name]


def test_layers_are_all_there():
    assert {file.parent.name for file in FILES} == set(MAY_IMPORT)
