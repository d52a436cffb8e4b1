"""Deep-web query selection: which keyword a search box is asked next (Jiang et al.)."""
