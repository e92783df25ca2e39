"""Files that are written completely or not at all, grow by records, and are safe to read."""
