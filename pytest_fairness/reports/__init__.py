"""Reports of a run. Their input is the report document; see `document.py`."""
