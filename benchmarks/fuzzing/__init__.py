"""Targets of the fuzzer, and their inputs."""
