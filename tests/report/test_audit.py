"""Pages drawn by chance, and what the answers about them prove."""

from contextlib import closing

import numpy as np
import pytest
from recorded_run import crawl_of, record

from tres_scrapy.report.audit import Audit, Ranked, audit_path, checked
from tres_scrapy.report.record_path import record_path
from tres_scrapy.run.run_file import RecordError, open_to_write


def run_of(size, share, shift, seed, sharp=1.5):
    """Return the pages of a run, and whether each is relevant in truth, by row.

    The judge is unsure, and sees too few (`shift` below 0) or too many relevant pages.
    """
    random = np.random.default_rng(seed)
    truth = random.random(size) < share
    score = np.where(truth, sharp, -sharp) + 1.5 * random.standard_normal(size) + shift
    p = 1 / (1 + np.exp(-score))
    pages = [Ranked(row, float(p[row]), bool(p[row] >= 0.5)) for row in range(size)]
    return pages, truth


def answered(pages, truth, count=20, seed=0):
    audit = Audit.draw(pages, count, seed)
    audit.answers = {row: bool(truth[row]) for row, _ in audit.drawn}
    return audit


@pytest.mark.long
@pytest.mark.parametrize(("size", "share", "shift"), [(60, 0.3, 0), (400, 0.2, -1), (2000, 0.1, 1)])
def test_intervals_hold_as_often_as_they_say(size, share, shift):
    """In 95 of 100 audits; of 60 with a true coverage of 92 %, 50 hold in 99 of 100 cases."""
    held, audits = {"precision": 0, "recall": 0}, {"precision": 0, "recall": 0}
    for seed in range(60):
        pages, truth = run_of(size, share, shift, seed)
        output = np.array([page.relevant for page in pages])
        audit, good = answered(pages, truth, seed=seed), (truth & output).sum()
        true = {"precision": good / output.sum(), "recall": good / truth.sum()}
        for name in held:
            if (found := getattr(audit, name)()) is not None:
                audits[name] += 1
                held[name] += found.low - 1e-9 <= true[name] <= found.high + 1e-9
    assert audits["precision"] == 60
    assert audits["recall"] >= 45
    assert all(held[name] >= 0.83 * audits[name] for name in held), (held, audits)
    assert sum(held.values()) >= 0.9 * sum(audits.values()), (held, audits)


def test_both_sides_of_the_threshold_are_drawn():
    pages, _ = run_of(400, 0.3, 0, seed=1)
    audit = Audit.draw(pages, 20, seed=5)
    relevant = {page.row for page in pages if page.relevant}
    drawn = [row for row, _ in audit.drawn]
    assert len(set(drawn)) == 20
    assert len(relevant.intersection(drawn)) == 10
    assert sum(audit.sizes) == 400
    assert Audit.draw(pages, 20, seed=6).drawn != audit.drawn
    assert [stratum for _, stratum in audit.drawn] != sorted(stratum for _, stratum in audit.drawn)


def test_every_page_answered_proves_all():
    pages, truth = run_of(30, 0.4, 0, seed=2)
    audit = answered(pages, truth, count=50)
    assert len(audit.drawn) == 30
    output = np.array([page.relevant for page in pages])
    for found, whole in ((audit.precision(), output.sum()), (audit.recall(), truth.sum())):
        assert found == pytest.approx(((truth & output).sum() / whole,) * 3)


def test_more_pages_narrow_the_intervals():
    pages, truth = run_of(3000, 0.3, 0, seed=3)
    few, many = (answered(pages, truth, count) for count in (20, 300))
    for name in ("precision", "recall"):
        wide, narrow = getattr(few, name)(), getattr(many, name)()
        assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


def test_without_answers_nothing_is_known():
    pages, _ = run_of(100, 0.3, 0, seed=4)
    audit = Audit.draw(pages, 20, seed=0)
    assert audit.precision() is None
    assert audit.recall() is None
    said = "judged relevant by the crawl itself (not checked)"
    assert checked(audit) == checked(None) == said


def test_output_alone_says_nothing_of_the_rest():
    pages = [Ranked(row, 0.9, row < 5) for row in range(10)]
    audit = answered(pages, np.arange(10) < 5, count=10)
    audit.answers = dict.fromkeys(range(5), True)
    assert audit.precision().value == 1.0
    assert audit.recall() is None


def test_audit_is_kept_beside_the_record(tmp_path):
    pages, truth = run_of(100, 0.3, 0, seed=4)
    record = tmp_path / "food-1.run"
    assert Audit.read(record) is None
    audit = answered(pages, truth)
    audit.write(record)
    assert audit_path(record).name == "food-1.audit.json"
    kept = Audit.read(record)
    assert kept == audit
    assert kept.recall() == audit.recall()
    for text in ("{", "[]", '{"answers": 3}'):
        audit_path(record).write_text(text)
        with pytest.raises(RecordError, match="is damaged"):
            Audit.read(record)


def test_audit_goes_aside_with_its_record(tmp_path):
    record(tmp_path / "food.run", crawl_of(pages=2))
    with closing(open_to_write(tmp_path / "food.run")) as file:
        file.execute("INSERT OR REPLACE INTO meta VALUES ('started', '2026')")
    audit_path(tmp_path / "food.run").touch()
    assert record_path(tmp_path / "food.jsonl", None, "2027", "food").name == "food.run"
    assert (tmp_path / "food-2026.run").is_file()
    assert (tmp_path / "food-2026.audit.json").is_file()
    assert not audit_path(tmp_path / "food.run").exists()
