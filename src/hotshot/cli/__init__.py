"""The command line: `hotshot COMMAND`."""

from __future__ import annotations

import os
import sys

from rich.console import Console

from hotshot.cli.app import app
from hotshot.errors import HotshotError, InterruptedRunError

FAILED, INTERRUPTED = 2, 130


def main() -> None:
    """Run the command line; an error of ours is one sentence and exit code 2 (130 after Ctrl-C), never a traceback."""
    # joblib's helper process, which cleans up after a run that was stopped, needs not tell of it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    try:
        app(prog_name="hotshot")
    except HotshotError as error:
        Console(stderr=True, soft_wrap=True).print(f"hotshot: {error}", style="red", markup=False)
        sys.exit(INTERRUPTED if isinstance(error, InterruptedRunError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


__all__ = ["main"]
