"""Scoring over HTTP, on ONNX Runtime."""

from __future__ import annotations

from halfseen.serve.app import create_app
from halfseen.serve.limits import Limits
from halfseen.serve.run import serve
from halfseen.serve.scorer import Scorer, Scorers, open_scorer, open_scorers

__all__ = ["Limits", "Scorer", "Scorers", "create_app", "open_scorer", "open_scorers", "serve"]
