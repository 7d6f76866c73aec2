"""How well several people agree, how reliable each is, and what their labels amount to."""
