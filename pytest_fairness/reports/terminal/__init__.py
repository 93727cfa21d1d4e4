"""Terminal output of runs and commands."""
