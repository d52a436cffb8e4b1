"""The webs and crawls of `benchmarks/hostile.py`."""
