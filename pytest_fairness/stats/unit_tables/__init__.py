"""Statistics of tables with a row for each unit and a column for each quantity, and their change between two runs."""
