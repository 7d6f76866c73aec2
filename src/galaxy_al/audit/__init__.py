"""How many are left, and how good is the model: answers with guarantees, from random samples."""
