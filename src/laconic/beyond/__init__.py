"""Rows beyond one memory: on the workers of a Dask cluster, or in files."""
