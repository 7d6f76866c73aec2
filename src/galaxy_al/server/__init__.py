"""The labelling page and its API: thin routes over the service."""
