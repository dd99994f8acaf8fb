"""`convert`: its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli.bank import SUFFIX, run_make_bank
from hotshot.cli.convert import run_convert
from hotshot.cli.options import Json
from hotshot.errors import ParameterError


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A feature file of any format, FILE:PART, or a bank.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its suffix says the format: .safetensors, .npz, .npy, .parquet, .csv, .tsv, .mat, or .bank.",
            show_default=False,
        ),
    ],
    dtype: Annotated[
        str | None, typer.Option(help="float16, float32 or float64; as in IN by default.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="Which part of a file with several.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels of an .npy file, where they have another name.")
    ] = None,
    extractor: Annotated[
        str | None, typer.Option(help="What the features come from, for the header.")
    ] = None,
    transform: Annotated[str | None, typer.Option(help="What was done to them, for the header.")] = None,
    samples: Annotated[
        bool, typer.Option("--samples/--no-samples", help="Whether a bank keeps its samples.")
    ] = True,
    covariance: Annotated[
        str | None, typer.Option(help="What a bank without samples keeps: diagonal, pooled or dense.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    json: Json = False,
) -> None:
    """Write features in another format, or as a bank, with where they come from in the header."""
    if out.suffix == SUFFIX:
        run_make_bank(
            source=source,
            out=out,
            dtype=dtype,
            part=part,
            labels=labels,
            extractor=extractor,
            transform=transform,
            samples=samples,
            covariance=covariance,
            force=force,
            as_json=json,
        )
        return
    if not samples or covariance is not None:
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {SUFFIX}.")
    run_convert(
        source=source,
        out=out,
        dtype=dtype,
        part=part,
        labels=labels,
        extractor=extractor,
        transform=transform,
        force=force,
        as_json=json,
    )
