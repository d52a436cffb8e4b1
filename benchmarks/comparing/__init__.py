"""Runs crawls of many policies on the same offline webs, in one process each."""
