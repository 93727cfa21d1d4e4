"""Reports on what changed: between two reports, and since a git revision."""
