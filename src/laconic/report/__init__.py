"""Where a model fails: clumps of errors, their statistics, and the page."""
