"""What leaves a crawl: JSON lines, tables, WARC files and metrics."""
