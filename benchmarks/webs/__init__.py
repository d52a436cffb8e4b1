"""Offline webs for crawls beside TRES: sites with a search box, and pages that change.

`PYTHONPATH=benchmarks scrapy crawl surface -a web=webs.deep:DeepWeb` crawls one.
"""
