"""`hotshot bank`: merge banks, or make a compact one to share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotshot.cli.app import epilog
from hotshot.cli.inputs import Force, refuse_existing
from hotshot.cli.terminal import Console, print_notes
from hotshot.formatting import printable, readable_size

if TYPE_CHECKING:
    from hotshot.bank import BaseClasses

COMPACT_NOTE = (
    "without samples, cost='hierarchical' is replaced by 'mean-cosine', and neither another feature space nor "
    "include_base is possible: keep the bank with samples for these."
)
bank = typer.Typer(help="Merge banks, or compact a bank to share it.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the new bank.", show_default=False)]


@bank.command(epilog=epilog("hotshot bank merge birds.bank more-birds.bank -o all.bank"))
def merge(
    banks: Annotated[list[Path], typer.Argument(metavar="BANK...", help="Two or more banks.", show_default=False)],
    out: Out,
    force: Force = False,
) -> None:
    """Merge the samples of banks; a class in several banks gets the samples of all."""
    from hotshot.bank.merging import merge_banks

    refuse_existing(out, force, *banks)
    _print_summary(merge_banks(banks, out, overwrite=force), banks, out)


@bank.command(epilog=epilog("hotshot bank compact birds.bank -o small.bank"))
def compact(
    source: Annotated[Path, typer.Argument(metavar="BANK", help="A bank with samples.", show_default=False)],
    out: Out,
    force: Force = False,
) -> None:
    """Write a bank without samples: means, low-rank covariances and the settings chosen on the samples."""
    from hotshot.bank import BaseClasses
    from hotshot.classifiers.choosing import progress
    from hotshot.classifiers.compacting import save_compact

    refuse_existing(out, force, source)
    console = Console(stderr=True)
    with console.status("reading the bank") as status:
        token = progress.set(status.update)
        try:
            save_compact(BaseClasses.load(source), out, overwrite=force)
        finally:
            progress.reset(token)
    _print_summary(BaseClasses.load(out), [source], out)
    print_notes(console, [COMPACT_NOTE])


def _print_summary(made: BaseClasses, sources: Sequence[Path], out: Path) -> None:
    before, after = (sum(f.stat().st_size for s in some for f in s.iterdir()) for some in (sources, [out]))
    counts = f"{len(made.names)} classes, {made.counts.sum()} samples, {made.n_features} features"
    kept = "with its samples" if made.samples is not None else "without samples"
    print(printable(f"Wrote {out}: a bank of {counts}, {kept}, {readable_size(after)} from {readable_size(before)}."))
