"""The commands that the project adds to `scrapy`."""
