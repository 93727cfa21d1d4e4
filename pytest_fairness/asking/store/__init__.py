"""The store, which holds all state that the processes of a run share. All SQL statements are in this package."""
