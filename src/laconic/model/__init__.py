"""The deployable side: atoms with their feature maps, predictors, costs, files."""
