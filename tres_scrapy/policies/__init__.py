"""The policies that choose the next link: TRES and the crawlers it is compared with."""
