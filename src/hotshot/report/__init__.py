"""A run, or a whole reproduction of the paper, as one page that opens anywhere."""

from hotshot.report.page import make_report, write_report
from hotshot.report.sources import Source
from hotshot.report.task_explorer import make_explorer

__all__ = ["Source", "make_explorer", "make_report", "write_report"]
