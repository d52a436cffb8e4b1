"""Which page of a collection to fetch again (Avrachenkov, Borkar and Patil, 2021)."""
