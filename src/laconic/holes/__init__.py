"""Hole punching: balls where a classifier fails, and models inside them."""
