"""The labelling application without the web."""
