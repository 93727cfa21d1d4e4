"""Suggestions of reports and messages: what to try next, commands to copy, variants of a probe."""
