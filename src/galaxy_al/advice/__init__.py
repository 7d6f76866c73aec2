"""What to tell a person who labels: how many are left, what more labels bring, when to stop."""
