"""Swaps: replacement of the terms of a group in a user's own prompt, which gives versions of it for other groups."""
