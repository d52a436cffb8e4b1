"""The extensions."""
