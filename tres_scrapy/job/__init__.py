"""What a crawl writes down so that it can be killed at any instant and go on."""
