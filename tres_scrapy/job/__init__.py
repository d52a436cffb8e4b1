"""The journal of a crawl, by which it can be resumed after a kill at any instant."""
