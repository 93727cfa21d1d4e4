"""Tables of measurements and words, for export as CSV, Parquet, LaTeX, HTML and pandas data frames."""
