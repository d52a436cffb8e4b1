"""The frontier: samples, their features and the tree that groups them (P 2.4.1, 2.6)."""
