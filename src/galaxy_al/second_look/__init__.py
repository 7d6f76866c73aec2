"""Labels to look at again: suspected errors, and duplicates with different labels."""
