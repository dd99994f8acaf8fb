"""The command line: `hotshot COMMAND`."""

from hotshot.cli.app import main

__all__ = ["main"]
