"""The same work on dask.distributed: pools that no machine holds."""
