"""What could be fetched: samples, their features and the tree that orders them (P 2.4.1, 2.6)."""
