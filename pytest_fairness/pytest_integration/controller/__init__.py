"""Work that is done only once in a run, by the process that the user started: header, baselines, reports, summary."""
