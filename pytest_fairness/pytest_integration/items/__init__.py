"""Test items of probe files and Python tests: collection, targets, planning, results."""
