"""Benchmarks: the paper's models measured on pairs of domains."""
