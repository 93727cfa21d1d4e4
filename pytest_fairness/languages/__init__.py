"""Languages of answers: identity terms, function words, refusals, words around choices; a data file per language."""
