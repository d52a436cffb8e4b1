"""The benchmark: every policy on the same webs, counted by the webs (P 3, Tables 3 and 4)."""
