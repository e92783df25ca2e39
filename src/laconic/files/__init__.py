"""Files that are written whole or not at all, grow by records, and are safe to read."""
