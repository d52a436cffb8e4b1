"""The crawl of Algorithm 3: choose, fetch, reward, expand; and what a policy is."""
