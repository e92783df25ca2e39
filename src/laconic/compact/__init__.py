"""The best classifier that fits: pool, size, penalty and word length, chosen under a budget."""
