"""Models of other libraries as predictors."""
