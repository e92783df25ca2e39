"""Where training rows live: shards, which answer with sums, and the sum over shards."""
