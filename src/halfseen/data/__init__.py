"""Readers of real data sets, each giving a :class:`~halfseen.data.pairs.DomainPair`."""

from __future__ import annotations

from halfseen.data.pairs import Card, DomainPair, Labelled, Sealed

__all__ = ["Card", "DomainPair", "Labelled", "Sealed"]
