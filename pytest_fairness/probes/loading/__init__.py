"""Read probe files: YAML with positions, JSON schema, located errors."""
