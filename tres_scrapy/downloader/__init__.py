"""Changes to Scrapy's downloader: header limits, robots.txt, private addresses, rendering."""
