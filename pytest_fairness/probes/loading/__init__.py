"""Loading of probe files: YAML reader with positions, JSON Schema, and errors with their location."""
