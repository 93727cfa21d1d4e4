"""Work done once for a run, in the process that the user started: header, baselines, reports, summary."""
