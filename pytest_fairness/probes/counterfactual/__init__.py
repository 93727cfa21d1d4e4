"""Probes of kind `counterfactual`."""
