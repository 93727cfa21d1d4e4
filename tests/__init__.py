"""Tests of pytest-fairness."""
