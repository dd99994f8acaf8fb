"""`hotshot bank`: merge banks, or make a compact one to share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.options import argument
from hotshot.cli.terminal import Console, print_notes, waiting
from hotshot.formatting import printable, readable_size

COMPACT_NOTE = (
    "without samples, cost='hierarchical' is replaced by 'mean-cosine', and neither another feature space nor "
    "include_base is possible: keep the bank with samples for these."
)
bank = typer.Typer(help="Merge banks, or compact a bank to share it.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the new bank.", show_default=False)]


@bank.command(epilog=options.epilog("hotshot bank merge birds.bank more-birds.bank -o all.bank"))
def merge(
    banks: Annotated[list[Path], argument("Two or more banks.", "BANK...")], out: Out, force: options.Force = False
) -> None:
    """Merge the samples of banks; a class in several banks gets the samples of all."""
    from hotshot.bank.converting import merge_banks

    options.refuse_existing(out, force, *banks)
    merge_banks(banks, out, overwrite=force)
    _print_summary(banks, out)


@bank.command(epilog=options.epilog("hotshot bank compact birds.bank -o small.bank"))
def compact(
    source: Annotated[Path, argument("A bank with samples.", "BANK")], out: Out, force: options.Force = False
) -> None:
    """Write a bank without samples: means, low-rank covariances and the settings chosen on the samples."""
    with waiting("starting"):
        from hotshot.bank import BaseClasses
        from hotshot.classifiers.held_out import progress
        from hotshot.classifiers.hot import save_compact
    options.refuse_existing(out, force, source)
    console = Console(stderr=True)
    with console.status("reading the bank") as status:
        token = progress.set(status.update)
        try:
            save_compact(BaseClasses.load(source), out, overwrite=force)
        finally:
            progress.reset(token)
    _print_summary([source], out)
    print_notes(console, [COMPACT_NOTE])


def _print_summary(sources: Sequence[Path], out: Path) -> None:
    from hotshot.bank import BaseClasses

    made = BaseClasses.load(out)
    before, after = (sum(f.stat().st_size for s in some for f in s.iterdir()) for some in (sources, [out]))
    counts = f"{len(made.names)} classes, {made.counts.sum()} samples, {made.n_features} features"
    form = "with its samples" if made.samples is not None else "without samples"
    print(printable(f"Wrote {out}: a bank of {counts}, {form}, {readable_size(after)} from {readable_size(before)}."))
