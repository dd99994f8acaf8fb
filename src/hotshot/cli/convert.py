"""`hotshot convert`: features in another format or type, or as a bank, with a record of their source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from hotshot.cli import options
from hotshot.cli.options import argument, option
from hotshot.cli.terminal import Console, bar, print_json, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import listed, printable, readable_size, shortened

WITHOUT_HEADER = (".csv", ".tsv", ".npy")


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
    with bar(Console(stderr=True), "samples") as progress:
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
