"""One file a command line option, each a run of pytest; `test_ini.py` has the settings that have no option."""
