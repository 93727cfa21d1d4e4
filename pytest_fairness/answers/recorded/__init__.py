"""Readers of files with recorded answers, which replace requests to a target; one module for each kind of probe."""
