"""A crawl on several topics."""

import csv

from soup import FOOD, OTHER, lines_of, link

from tres_scrapy.config.config import Config
from tres_scrapy.run.identity import identity_of

SPORT = (
    "<title>Cup final</title><p>The striker scored the winning goal in the football match: the "
    "team, its coach and the players won the league championship after the final game of the "
    "season, with a penalty in the second half of the tournament.</p>"
)


def test_items_carry_the_scores_of_each_topic(scrapy, tres, tmp_path, pages):
    hosts = ("http://a.test/", "http://b.test/")
    pages.add("http://s.test/", OTHER.format("tax") + link(*hosts))
    pages.add(hosts[0], FOOD.format("leek"))
    pages.add(hosts[1], SPORT)
    output = tmp_path / "both.jsonl"
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food,sports", "-a", "seed=http://s.test/"),
        *("-a", f"output={output}", "-s", "DOWNLOAD_DELAY=0", "-a", "report=0", "-a", "csv=1"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    food, sport = sorted(lines_of(output), key=lambda item: item["url"])
    assert food["scores"]["food"] == food["probability"] > 0.5 > food["scores"]["sports"]
    assert sport["scores"]["sports"] == sport["probability"] > 0.5 > sport["scores"]["food"]
    with output.with_suffix(".csv").open(encoding="utf-8", newline="") as table:
        rows = {row["url"]: row for row in csv.DictReader(table)}
    for item in (food, sport):
        row = rows[item["url"]]
        for topic, score in item["scores"].items():
            assert row[f"score_{topic}"] == f"{score:.4f}"
    explained = tres("explain", str(output), hosts[0])
    assert "; food 1.000, sports 0." in explained.stdout, explained.stderr


def test_resumed_crawl_needs_the_same_packs():
    one, both = (identity_of(Config(topic=name))["pack"] for name in ("food", "food+sports"))
    assert both.startswith(f"{one}+")
