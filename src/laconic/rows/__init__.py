"""Training rows in shards. Shards answer with sums over their rows, and `Rows` adds them up."""
