"""Statistical functions of numpy arrays; they use no files, settings or probes.

Docstrings give the shape of an array in brackets: `(units, columns)` has one row for each unit. `(..., columns)` stands
for any number of leading axes, such as one row of columns for each random draw. For such an array, a function returns
one result for each row.
"""
