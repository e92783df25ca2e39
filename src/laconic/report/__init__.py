"""Reports on where a model fails: clumps of errors, their statistics, and the page."""
