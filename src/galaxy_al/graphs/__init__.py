"""The paper's graphs: rankings, linear graphs and neighbour graphs."""
