"""What the experiments print on the terminal."""
