"""The store: all SQL, and the only meeting point of the processes of a run."""
