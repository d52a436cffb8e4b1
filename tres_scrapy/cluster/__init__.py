"""One crawl on many machines: shards by domain, one learner, one budget, one view."""
