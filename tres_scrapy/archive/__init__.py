"""The archive of a crawl: what was asked and answered, as WARC 1.1 (ISO 28500:2017)."""
