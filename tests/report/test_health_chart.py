from tres_scrapy.report.crawl_chart import KINDS, MIB, errors_chart, memory_chart
from tres_scrapy.run.run_file import HealthPoint
from tres_scrapy.run.writer import resident_memory

HEALTH = [
    HealthPoint(0.0, 100 * MIB, {"200": 8, "404": 2}),
    HealthPoint(60.0, 150 * MIB, {"200": 17, "404": 3}),
    HealthPoint(120.0, 120 * MIB, {"503": 4}),  # resumed: it counts from 0 again
    HealthPoint(180.0, None, {"503": 4}),
]


def test_errors_are_shares_of_each_interval():
    chart = errors_chart(HEALTH, [0.0, 100.0])
    shares = {trace["name"]: trace["y"] for trace in chart.data}
    assert shares == {"404": [20, 10, 0, 0], "503": [0, 0, 100, 0]}
    assert chart.data[0]["x"] == [0, 1, 2, 3]


def test_rare_errors_share_an_area():
    kinds = {f"5{i:02}": 1 for i in range(KINDS + 3)} | {"200": 2}
    chart = errors_chart([HealthPoint(0.0, None, kinds)], [])
    assert len(chart.data) == KINDS + 1
    assert (chart.data[-1]["name"], chart.data[-1]["y"]) == ("others", [30])


def test_memory_has_a_gap_where_the_crawl_was_resumed():
    trace = memory_chart(HEALTH, [0.0, 100.0]).data[0]
    assert trace["y"] == [100, 150, None, 120, None]


def test_nothing_known_is_no_chart():
    assert errors_chart([], []) is memory_chart([], []) is None
    assert errors_chart([HealthPoint(0.0, None, {"200": 5})], []) is None
    assert memory_chart(HEALTH[-1:], []) is None


def test_memory_counts_this_process():
    assert 10 * MIB < resident_memory() < 10_000 * MIB
