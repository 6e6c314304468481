"""Scoring over HTTP: the command `halfseen serve`."""
