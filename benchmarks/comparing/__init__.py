"""Runs crawls of many policies on the same offline webs, in one process each."""

import rivals  # noqa: F401 - it gives the simple policies their short names
