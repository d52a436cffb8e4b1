"""What hardens or replaces Scrapy's downloader: headers, robots, addresses, rendering."""
