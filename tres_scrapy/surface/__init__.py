"""Crawls the records behind search boxes by choosing good keywords (Jiang et al.)."""
