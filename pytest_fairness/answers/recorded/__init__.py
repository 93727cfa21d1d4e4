"""Readers of files of recorded answers, which replace requests to a target; one module for each probe kind."""
