"""What learns p(y | x1): each member in its own way, behind one protocol."""
