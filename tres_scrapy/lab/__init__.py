"""The laboratory: offline webs, rivals and comparisons, counted by the webs (P 3, Tables 3, 4)."""
