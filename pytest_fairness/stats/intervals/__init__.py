"""Standard errors, confidence intervals and power of single estimates."""
