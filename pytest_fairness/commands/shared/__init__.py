"""Arguments, settings and output that several commands share."""
