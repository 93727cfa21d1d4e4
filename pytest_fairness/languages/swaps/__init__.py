"""Swaps: the terms of a group in a user's own prompt, and the counterfactual versions of the prompt."""
