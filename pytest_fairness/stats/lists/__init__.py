"""Quality and similarity of ranked lists."""
