"""A guest: takes pages out of every file of a run."""
