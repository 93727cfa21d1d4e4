"""Keys that several kinds of probe share, with their checks."""
