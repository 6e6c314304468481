"""Models as folders: writing, loading, and what is made from a saved model."""
