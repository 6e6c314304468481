"""Readers of real data sets, each giving a :class:`~halfseen_bench.data.pairs.DomainPair`."""

from __future__ import annotations

from halfseen_bench.data.pairs import Card, DomainPair, Labelled, Sealed

__all__ = ["Card", "DomainPair", "Labelled", "Sealed"]
