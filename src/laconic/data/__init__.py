"""The user's data: frames, cells, dates, labels and weights, with warnings of likely mistakes."""
