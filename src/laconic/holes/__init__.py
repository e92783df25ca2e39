"""Hole punching: find balls in which a classifier fails, and fit models inside them."""
