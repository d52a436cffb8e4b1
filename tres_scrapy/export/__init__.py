"""Output of a crawl: JSON lines, tables, WARC files and metrics."""
