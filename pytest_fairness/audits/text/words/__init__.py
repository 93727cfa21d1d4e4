"""Words of two groups of texts: association with a group, growth, terms of lexicons, exported rows."""
