"""Baseline files: reader, writer, comparison of revisions, and verdicts on measurements."""
