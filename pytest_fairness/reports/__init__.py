"""Reports of a run; all reports are made from the report document of `document.py`."""
