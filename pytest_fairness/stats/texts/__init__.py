"""Statistics of word counts and of feature vectors of texts."""
