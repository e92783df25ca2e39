"""Rows on a GPU, or on any device of torch. Only this room imports torch, when it is used."""
