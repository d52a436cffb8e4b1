"""The record of a run: what a crawl did and why, for people to look at."""
