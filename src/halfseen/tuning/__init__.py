"""A search over settings by a score without target labels: resumable, in parallel."""

from __future__ import annotations

from halfseen.tuning.searching import SearchResult, SearchTrial, search
from halfseen.tuning.spaces import paper_space

__all__ = ["SearchResult", "SearchTrial", "paper_space", "search"]
