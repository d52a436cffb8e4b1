"""Every setting of a crawl: its name, rule, default and meaning, parsed once."""
