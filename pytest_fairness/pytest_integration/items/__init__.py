"""Test items of probe files and of Python tests: collection, targets, planning of requests, results."""
