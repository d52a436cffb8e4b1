import json
from dataclasses import replace

import pytest
from comparing.result import Result, Run

RUN = Run("synthetic", "food", 1, "tres", "5_2", 10**6)
LONG = Result(RUN, 1_000_000, 2, 10, 1_100_000, False, 9e6, [500_000, 1_000_000])


def test_long_result_survives_a_file(tmp_path):
    LONG.write(tmp_path)
    (path,) = tmp_path.iterdir()
    assert Result.read(path) == LONG


def test_start_is_part_of_name(tmp_path):
    runs = [RUN, replace(RUN, start="http://a.test/"), replace(RUN, start="http://b.test/")]
    for run in runs:
        replace(LONG, run=run).write(tmp_path)
    found = {Result.read(path).run for path in tmp_path.iterdir()}
    assert found == set(runs)
    assert RUN.name == "synthetic-food-1-tres-5_2-1000000"


@pytest.mark.parametrize("found", [[1, 3, 4, 12], [11, 12], [10], []])
def test_counts_equal_the_curve(found):
    """Compare with the curve of relevant pages, one value per fetch."""
    run = replace(RUN, pages=10)
    result = Result(run, 10, len(found), 1, 12, False, 1.0, found)
    curve = [sum(each <= fetches for each in found) for fetches in range(13)]
    assert [result.found_after(fetches) for fetches in range(13)] == curve
    assert result.area == sum(curve[1:11])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "9", None, 10**400])
def test_what_is_no_count_is_refused(tmp_path, wrong):
    LONG.write(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pages": wrong}))
    with pytest.raises((ValueError, TypeError)):
        Result.read(path)
