"""A run, or a whole reproduction of the paper, as one page that opens anywhere."""

from hotshot.report.explorer import Source
from hotshot.report.page import make_report, write_report

__all__ = ["Source", "make_report", "write_report"]
