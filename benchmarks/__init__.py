"""Benchmarks and fuzzers, each a command that prints its tables: `python -m benchmarks NAME`."""
