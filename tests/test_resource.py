"""Files of the package are read through importlib.resources: the package may be a zipped egg."""

import ast

import pytest
from test_layers import FILES, name_of


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_path_is_made_of_a_module(file):
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    assert not [node.lineno for node in nodes if getattr(node, "id", "") == "__file__"]
    assert not [node.lineno for node in nodes if getattr(node, "attr", "") == "__file__"]
    assert not [node.lineno for node in nodes if getattr(node, "attr", "") == "__path__"]
