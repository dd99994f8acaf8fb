"""Benchmarks: ratios against named peers, each a command that prints its table."""
