"""A search over settings by a score without target labels: resumable, pruned, in parallel."""

from __future__ import annotations

from halfseen.tuning.searching import SearchResult, search
from halfseen.tuning.spaces import paper_space
from halfseen.tuning.trials import SearchTrial

__all__ = ["SearchResult", "SearchTrial", "paper_space", "search"]
