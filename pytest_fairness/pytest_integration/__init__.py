"""Everything that knows pytest: session, collection, fixtures, terminal."""
