"""Gaps, spreads and stratified differences between groups, and their change between two runs."""
