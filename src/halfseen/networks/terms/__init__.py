"""Losses as objects, one file each."""
