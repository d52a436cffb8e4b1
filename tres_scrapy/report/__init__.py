"""The record of a crawl, and its charts, report and explanations."""
