"""Exports: readings of lowered predictors. C99 headers, chips, and the bytes that a model takes."""
