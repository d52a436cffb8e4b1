"""Spiders: the focused crawl, and fetching a list of URLs."""
