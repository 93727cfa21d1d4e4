"""Integration into pytest: session, collection, fixtures, terminal."""
