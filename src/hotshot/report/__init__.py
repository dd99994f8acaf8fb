"""A run, or a whole reproduction of the paper, as one page that opens anywhere."""

from hotshot.report.page import make_report, write_report
from hotshot.report.sources import Source

__all__ = ["Source", "make_report", "write_report"]
