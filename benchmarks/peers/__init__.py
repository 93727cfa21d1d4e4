"""Programs that do the same with other packages, each with a Python that has the package."""
