"""halfseen."""
