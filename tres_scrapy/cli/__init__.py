"""The program `tres`: one file for each command."""
