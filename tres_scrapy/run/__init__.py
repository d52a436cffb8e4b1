"""The journal of a crawl, from which it can be resumed after a kill at any moment."""
