"""What the product claims of its speed and of its verdicts, measured."""
