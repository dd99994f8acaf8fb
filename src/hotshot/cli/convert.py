"""`hotshot convert`, `hotshot bank` and `hotshot export`: features, banks and models in another form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.options import argument, option
from hotshot.cli.terminal import Bar, Console, choices_shown, print_json, print_notes, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import listed, printable, readable_size, shortened

WITHOUT_HEADER = (".csv", ".tsv", ".npy")
COMPACT_NOTE = (
    "without samples, cost='hierarchical' is replaced by 'mean-cosine', and neither another feature space nor "
    "include_base is possible: keep the bank with samples for these."
)
bank = typer.Typer(help="Merge banks, or compact a bank to share it.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the new bank.", show_default=False)]


def convert(
    source: Annotated[Path, argument("Feature file of any format, FILE:PART, or a bank.", "IN")],
    out: Annotated[
        Path,
        argument("Output. The suffix sets the format: .safetensors, .npz, .npy, .parquet, .csv, .tsv or .bank.", "OUT"),
    ],
    dtype: Annotated[str | None, option("Number type: float16, float32 or float64. Default: as in IN.")] = None,
    part: Annotated[str | None, option("Part of IN to convert, if it has several.")] = None,
    labels: Annotated[Path | None, option("Labels of an .npy file, unless stored beside it.")] = None,
    extractor: Annotated[str | None, option("Name of the extractor, for the header.")] = None,
    transform: Annotated[str | None, option("Transform of the features, for the header.")] = None,
    seen_in_training: Annotated[
        bool | None,
        option(
            "Record in the header whether the extractor was trained on these classes. If so, only the power is chosen "
            "on them. Default: not recorded."
        ),
    ] = None,
    samples: Annotated[bool, option("Keep the samples in a bank.", "--samples/--no-samples")] = True,
    covariance: Annotated[
        str | None, option("Covariances of a bank without samples: low-rank, diagonal, pooled or dense.")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Convert features to another format or to a bank; record their source."""
    with waiting("starting"):
        from hotshot.bank.bank import SEEN
        from hotshot.bank.converting import BANK_SUFFIX, convert, files_of
        from hotshot.files.opening import split_part
    suffix = out.suffix.lower()
    to_bank = suffix == BANK_SUFFIX
    if to_bank and dtype is not None:
        raise ParameterError("--dtype is for feature files: a bank keeps the type of its features.")
    if to_bank and not samples and covariance is None:
        raise ParameterError("--no-samples needs --covariance low-rank, diagonal, pooled or dense.")
    if not to_bank and (not samples or covariance is not None):
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {BANK_SUFFIX}.")
    source, part = split_part(Path(source), part)
    for path in files_of(out):
        if os.path.isdir(path) and not to_bank:
            raise ParameterError(f"{path} is a folder: name a file.")
        options.refuse_existing(path, force, source, labels)
    entries = {"extractor": extractor, "transform": transform, SEEN: seen_in_training}
    about = {name: value for name, value in entries.items() if value is not None}
    with Bar(Console(stderr=True), "samples") as progress:
        done = convert(
            source, out, part=part, labels=labels, dtype=dtype, about=about, samples=samples, covariance=covariance,
            overwrite=force, watch=lambda doing, *counts: progress.count(f"{doing} {shortened(source.name)}", *counts),
        )  # fmt: skip
    counts = {"samples": done.n_samples, "classes": done.n_classes, "features": done.n_features}
    if json:
        print_json({"out": str(out), **counts, "dtype": done.dtype, "bytes": done.n_bytes, "about": done.about})
        return
    summary = ", ".join(f"{number} {noun}" for noun, number in counts.items()) + f" of {done.dtype}"
    if to_bank:
        form = "with its samples" if samples else f"without samples, covariances {covariance}"
        summary = f"a bank of {summary}, {form}"
    sizes = f"{readable_size(done.n_bytes)} from {readable_size(done.n_bytes_before)}"
    print(printable(f"Wrote {out}: {summary}, {sizes}."))
    if suffix in WITHOUT_HEADER:
        print(f"A {suffix} file has no header: source, extractor and transform were not written.")
    if done.left_out:
        columns = f"the column{'s' * (len(done.left_out) > 1)} {listed(done.left_out)}"
        print(printable(f"{out} cannot hold {columns}: write .safetensors to keep them."))


@bank.command(epilog=options.epilog("hotshot bank merge birds.bank more-birds.bank -o all.bank"))
def merge(
    banks: Annotated[list[Path], argument("Two or more banks.", "BANK")], out: Out, force: options.Force = False
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
        from hotshot.classifiers.hot import save_compact
    options.refuse_existing(out, force, source)
    console = Console(stderr=True)
    with console.status("reading the bank") as status, choices_shown(status.update):
        save_compact(BaseClasses.load(source), out, overwrite=force)
    _print_summary([source], out)
    print_notes(console, [COMPACT_NOTE])


def _print_summary(sources: Sequence[Path], out: Path) -> None:
    from hotshot.bank import BaseClasses

    made = BaseClasses.load(out)
    before, after = (sum(f.stat().st_size for s in some for f in s.iterdir()) for some in (sources, [out]))
    counts = f"{len(made.names)} classes, {made.counts.sum()} samples, {made.n_features} features"
    form = "with its samples" if made.samples is not None else "without samples"
    print(printable(f"Wrote {out}: a bank of {counts}, {form}, {readable_size(after)} from {readable_size(before)}."))


def export(
    model: options.Model, out: Annotated[Path, argument("Output file, .onnx.", "OUT")], force: options.Force = False
) -> None:
    """Export a model as ONNX, to use it without hotshot."""
    from hotshot.classifiers import HOTClassifier
    from hotshot.classifiers.export import export_model

    if out.is_file():
        options.refuse_existing(out, force, model)
    loaded = HOTClassifier.load(model)
    export_model(loaded, out, overwrite=force)
    scores = "with outlier scores" if loaded.outliers_ is not None else "without outlier scores"
    counts = f"{len(loaded.classes_)} classes, {loaded.n_features_in_} features, {scores}"
    print(printable(f"Wrote {out}: {counts}, {readable_size(out.stat().st_size)}."))
