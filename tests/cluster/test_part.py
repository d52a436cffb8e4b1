import json

from tres_scrapy.cluster.start import join_parts


def write(path, *times, torn=""):
    lines = [json.dumps({"url": f"{path.name}{at}", "fetched_at": at}) + "\n" for at in times]
    path.write_text("".join(lines) + torn)
    return path


def test_parts_are_joined_by_time(tmp_path):
    parts = [write(tmp_path / "a", "1", "4"), write(tmp_path / "b", "2", "3"), tmp_path / "none"]
    output = tmp_path / "new" / "out.jsonl"
    assert join_parts(parts, output) == 4
    times = [json.loads(line)["fetched_at"] for line in output.read_text().splitlines()]
    assert times == ["1", "2", "3", "4"]
    assert [path.name for path in output.parent.iterdir()] == ["out.jsonl"]


def test_torn_line_is_left_out(tmp_path):
    part = write(tmp_path / "a", "1", torn='{"url": "tor')
    assert join_parts([part], tmp_path / "out.jsonl") == 1


def test_joining_again_replaces_output(tmp_path):
    part, output = write(tmp_path / "a", "1"), tmp_path / "out.jsonl"
    join_parts([part], output)
    assert join_parts([part], output) == 1
    assert len(output.read_text().splitlines()) == 1
