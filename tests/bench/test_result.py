import json

import pytest

from tres_scrapy.bench.result import Result, Run, Series

RUN = Run("synthetic", "food", 1, "tres", "5_2", 10**6)
MARKS = [500_000, 1_000_000]
SERIES = Series(MARKS, MARKS, [9, 10], [2_000_000, 10_000_000], [1, 2], [0.1, 0.2])
LONG = Result(RUN, 1_000_000, 900_000, 10, 1_100_000, False, 9e6, SERIES)


def test_long_result_survives_a_file(tmp_path):
    LONG.write(tmp_path)
    (path,) = tmp_path.iterdir()
    assert Result.read(path) == LONG


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "9", None, 10**400])
def test_what_is_no_count_is_refused(tmp_path, wrong):
    LONG.write(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pages": wrong}))
    with pytest.raises((ValueError, TypeError)):
        Result.read(path)
