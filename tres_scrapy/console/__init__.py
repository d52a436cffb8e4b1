"""The command `tres`, which works in any folder."""
