"""Reports of a run; see docs/architecture.md."""
