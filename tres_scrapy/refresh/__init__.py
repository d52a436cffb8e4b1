"""Keeps the pages of a finished crawl fresh (Avrachenkov, Borkar and Patil, 2021)."""
