"""The record of a crawl and what people read of it: figures, report, explanations."""
