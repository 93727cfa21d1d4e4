"""Swaps: replacement of the terms of one group in a user's own prompt by the terms of another group."""
