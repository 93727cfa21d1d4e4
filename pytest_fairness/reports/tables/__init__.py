"""Tables to take away: measurements and words as CSV, Parquet, LaTeX, HTML and pandas data frames."""
