"""The table panel: two data frames in, one answer out, beside what people would use instead.

*Development* problems may be looked at while the model is built. *Evaluation* problems are run
once a version is finished, and every look is counted in docs/results/tables.md.
"""

from halfseen_bench.panel.running import read_records, run_panel
from halfseen_bench.panel.standing import panel_table

__all__ = ["panel_table", "read_records", "run_panel"]
