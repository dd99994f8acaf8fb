"""`hotshot bank`: banks merged, or made small enough to share."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hotshot.base import BaseClasses
from hotshot.base.merging import merge_banks
from hotshot.cli.terminal import Console, print_notes
from hotshot.errors import ParameterError
from hotshot.estimators.choosing import telling
from hotshot.estimators.compacting import save_compact
from hotshot.formatting import printable, readable_size

COMPACT_NOTE = (
    "without samples cost='mean-cosine' takes the place of 'hierarchical', other spaces than the saved one are "
    "refused, and so is include_base: keep the bank with samples for these."
)
bank = typer.Typer(help="Merge banks, or make one small enough to share.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the new bank.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Overwrite OUT.")]


@bank.command()
def merge(
    banks: Annotated[list[Path], typer.Argument(metavar="BANK...", help="Two banks or more.", show_default=False)],
    out: Out,
    force: Force = False,
) -> None:
    """Join the samples of banks; a class that several have gets the samples of all."""
    _check_out(banks, out, force)
    _say(merge_banks(banks, out, overwrite=force), banks, out)


@bank.command()
def compact(
    source: Annotated[Path, typer.Argument(metavar="BANK", help="A bank with samples.", show_default=False)],
    out: Out,
    force: Force = False,
) -> None:
    """Write a bank without its samples: means, low-rank covariances, and the settings chosen on the samples."""
    _check_out([source], out, force)
    console = Console(stderr=True)
    with console.status("reading the bank") as status:
        told = telling.set(status.update)
        try:
            save_compact(BaseClasses.load(source), out, overwrite=force)
        finally:
            telling.reset(told)
    _say(BaseClasses.load(out), [source], out)
    print_notes(console, [COMPACT_NOTE])


def _check_out(sources: Sequence[Path], out: Path, force: bool) -> None:
    if not os.path.exists(out):
        return
    if any(os.path.exists(source) and out.samefile(source) for source in sources):
        raise ParameterError(f"{out} is what is to be read: name another one.")
    if not force:
        raise ParameterError(f"{out} exists: pass --force to overwrite it.")


def _say(made: BaseClasses, sources: Sequence[Path], out: Path) -> None:
    """One sentence on what was written."""
    before, after = (sum(f.stat().st_size for s in some for f in s.iterdir()) for some in (sources, [out]))
    counts = f"{len(made.names)} classes, {made.counts.sum()} samples, {made.n_features} features"
    kept = "with its samples" if made.samples is not None else "without samples"
    print(printable(f"Wrote {out}: a bank of {counts}, {kept}, {readable_size(after)} from {readable_size(before)}."))
