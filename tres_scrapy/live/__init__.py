"""The live page of a crawl: its contents, its controls, and access to it."""
