"""No file that a stranger may have made is unpickled: a pickle runs code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    file for room in ("tres_scrapy", "benchmarks") for file in (ROOT / room).rglob("*.py")
)
MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
ALLOWED = {
    "tres_scrapy/topic/judge_process.py",  # pipes to a process of ours
    "tres_scrapy/training/word_vectors.py",  # an Unpickler that finds no classes but our own
}
SAFE = {"torch": ("weights_only", True), "np": ("allow_pickle", False)}
SAFE["numpy"] = SAFE["np"]


def dangers(tree):
    """Yield what may unpickle: imports of such modules, and calls that do not rule it out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module,) if node.module in MODULES else ()
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            said = {each.arg: ast.unparse(each.value) for each in node.keywords}
            module, _, function = name.rpartition(".")
            if function == "load" and module in SAFE:
                keyword, value = SAFE[module]
                yield from () if said.get(keyword) == str(value) else (name,)
            elif function == "read_pickle" or said.get("allow_pickle", "False") != "False":
                yield name


def test_nothing_is_unpickled():
    for file in FILES:
        name = file.relative_to(ROOT).as_posix()
        found = list(dangers(ast.parse(file.read_text(encoding="utf-8"))))
        assert not found or name in ALLOWED, f"{name} may unpickle: {found}"


@pytest.mark.parametrize(
    "line",
    [
        *("import pickle", "from joblib import load", "torch.load(path)", "np.load(path)"),
        *("np.load(path, allow_pickle=True)", "pd.read_pickle(path)"),
        *("torch.load(path, weights_only=False)", "format.read_array(file, allow_pickle=flag)"),
    ],
)
def test_danger_is_found(line):
    assert list(dangers(ast.parse(line)))
    assert not list(dangers(ast.parse("np.load(path, allow_pickle=False)")))
