"""Who is next: TRES and the crawlers it is compared with, behind one interface."""
