"""Regions of the data space: where errors lie close together, and the holes punched there."""
