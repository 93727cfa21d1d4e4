"""Reports on what changed: between two reports, since a git revision, and acceptances over time."""
