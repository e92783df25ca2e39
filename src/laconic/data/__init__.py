"""People's data: frames, cells, dates, labels, weights, and what looks wrong in them."""
