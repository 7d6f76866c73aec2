"""From embeddings and labels to probabilities."""
