"""A guest: a folder of static HTML pages about a crawl, to pass on."""
