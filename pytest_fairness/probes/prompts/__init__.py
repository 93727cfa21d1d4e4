"""Texts of prompts: templates with placeholders, clauses that can be left out, the prompt for a judge model."""
