"""Statistical functions of numpy arrays; the functions use no files, settings or probes.

Docstrings give the shape of an array in brackets: `(units, columns)` has one row for each unit. `(..., columns)` stands
for any number of leading axes: an array may have one row of columns for each random draw. A function of such an array
returns one result for each row.
"""
