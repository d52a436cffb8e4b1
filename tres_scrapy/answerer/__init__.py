"""Answers about pages by a program, in the place of a person."""
