"""TRES, a focused crawler that learns while it crawls, as a Scrapy project."""
