"""How a model is made: prepared rows, members, weights, measures."""
