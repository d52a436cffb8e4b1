"""Targets of the fuzzer, and what it feeds them."""
