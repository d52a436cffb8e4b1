"""The live page of a crawl: what it shows, what can be asked of it, and who may."""
