"""Neural networks: the only part of the package that imports torch."""
