"""Swaps: replacing the terms of a group in a user's own prompt gives the prompt's counterfactual versions."""
