"""What a link says, and the model that learns from it while the crawl runs."""
