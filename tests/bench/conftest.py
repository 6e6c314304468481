"""Lets the tests of this folder share a small problem."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
