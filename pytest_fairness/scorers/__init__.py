"""Models that score texts."""
