"""The fitted model, and all that it does: predict, evaluate, explain, load."""
