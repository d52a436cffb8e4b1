"""URLs: the canonical form, the registrable domain, and whether the host is public."""
