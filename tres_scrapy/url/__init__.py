"""What a URL is: its canonical form, its registrable domain, and whether its host is public."""
