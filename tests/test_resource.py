"""Files of the package are read through importlib.resources: the package may be a zipped egg."""

import ast

from test_layers import FILES, name_of


def test_no_path_is_made_of_a_module():
    for file in FILES:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        names = {getattr(node, "id", "") for node in nodes}
        attributes = {getattr(node, "attr", "") for node in nodes}
        assert not {"__file__", "__path__"} & (names | attributes), name_of(file)
