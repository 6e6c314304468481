"""Encoders, generator and classifier, and the module that joins them."""
