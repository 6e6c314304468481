"""Models as folders: writing and reading them, with seals that a changed bit breaks."""
