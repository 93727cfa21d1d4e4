"""The store: all SQL statements, and the only place through which the processes of a run share state."""
