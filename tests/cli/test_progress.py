"""What is watched while methods run: warnings become notes, and Ctrl-C one sentence."""

from __future__ import annotations

import warnings
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hotshot.cli.progress import Watching
from hotshot.errors import InterruptedRunError, ScaleWarning

CONSOLE = Console(file=StringIO())


def test_each_warning_about_scale_is_one_note():
    with Watching(CONSOLE, None) as watching:
        for text in ("too small", "too large", "too small"):
            warnings.warn(text, ScaleWarning, stacklevel=1)
    assert watching.notes == ["too small", "too large"]


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (None, "Interrupted in costs. Nothing was kept without a run folder."),
        (Path("here"), "Interrupted in costs. here holds 1,200 finished tasks: rerun the command to resume."),
    ],
)
def test_control_c_is_one_sentence(out, sentence):
    watching = Watching(CONSOLE, None, out, " in costs")
    watching.done = 1200
    with pytest.raises(InterruptedRunError) as caught, watching:
        raise KeyboardInterrupt
    assert str(caught.value) == sentence


def test_other_errors_pass_through():
    with pytest.raises(ValueError, match="as it is"), Watching(CONSOLE, None, Path("here")):
        raise ValueError("as it is")
