"""Test items of probe files, and fixtures of Python tests: collection, targets, planning of requests, results."""
