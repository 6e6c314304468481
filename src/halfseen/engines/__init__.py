"""Scoring of tables that live on a cluster: what `halfseen predict` does, as a Ray or Spark map.

Each module needs its engine: ``pip install 'halfseen[ray]'`` or ``'halfseen[spark]'``. The
workers load the model folder themselves, once each, so they must see it under the same path.
"""
