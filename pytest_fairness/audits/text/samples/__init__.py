"""Documents of two groups with a statistic of their distance, for the audits of `two_sample`."""
