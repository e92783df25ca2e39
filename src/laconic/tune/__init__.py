"""Tuning: re-optimise the parameters of chosen atoms together with their weights."""
