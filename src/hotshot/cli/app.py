"""Commands and their flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hotshot import __version__
from hotshot.banks import BANK_NAMES
from hotshot.cli.bank import SUFFIX, run_make_bank
from hotshot.cli.convert import run_convert
from hotshot.cli.data import numbers
from hotshot.cli.demo import DEMO_METHODS, run_demo
from hotshot.cli.evaluate import run_evaluate
from hotshot.cli.inspect import run_inspect
from hotshot.cli.memory import keep_freed_memory
from hotshot.cli.tune import run_tune
from hotshot.errors import ParameterError, RunError
from hotshot.estimators import METHOD_NAMES

app = typer.Typer(
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hotshot {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Few-shot classification by hierarchical optimal transport."""


Base = Annotated[
    Path | None, typer.Option(help="Features of the base classes, in a file of any format, or a bank.")
]
Novel = Annotated[Path | None, typer.Option(help="Features of the novel classes, in a file of any format.")]
Bank = Annotated[str | None, typer.Option(help=f"Embedded bank instead of files: {', '.join(BANK_NAMES)}.")]
Ways = Annotated[int, typer.Option(help="Classes per task.")]
Shots = Annotated[str, typer.Option(help="Support samples per class, several in turn.")]
Queries = Annotated[int, typer.Option(help="Query samples per class.")]
Seed = Annotated[int, typer.Option(help="Seed of the tasks.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to compute on, such as tcp://host:8786.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


@app.command()
def demo(
    bank: Annotated[str, typer.Option(help=f"Embedded bank: {', '.join(BANK_NAMES)}.")] = "banking77",
    methods: Annotated[
        str, typer.Option(help="Methods to compare, by name; the first is compared to the others.")
    ] = ",".join(DEMO_METHODS),
    ways: Annotated[
        int | None, typer.Option(help="Classes per task; 5, or 20 of omniglot, by default.")
    ] = None,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[
        int | None, typer.Option(help="Tasks for each number of shots; 50 of 5 ways, 12 of 20 by default.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare H-OT with its baselines on real features that come with hotshot, and explain one prediction."""
    run_demo(bank, methods.split(","), ways, shots, queries, tasks, seed, json)


@app.command()
def evaluate(
    base: Base = None,
    novel: Novel = None,
    bank: Bank = None,
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods with commas: {', '.join(METHOD_NAMES)}; or NAME=FILE.json with parameters from tune."
        ),
    ] = "hot,free-lunch,logistic,centroid-cl2n",
    ways: Ways = 5,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[int, typer.Option(help="Tasks for each number of shots.")] = 10_000,
    seed: Seed = 0,
    jobs: Jobs = -1,
    scheduler: Scheduler = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; the same command goes on with it. Default: a folder of its own in runs."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method the others are compared to; the first by default.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Count tasks with an accuracy below this.")] = 0.5,
    save_tasks: Annotated[
        Path | None, typer.Option(help="Freeze the tasks to this file, to share them.")
    ] = None,
    load_tasks: Annotated[
        Path | None, typer.Option(help="Use the tasks frozen in this file; it decides ways, shots and so on.")
    ] = None,
    json: Json = False,
) -> None:
    """Accuracy of methods on thousands of tasks, paired, on all cores; interrupted runs go on where they stopped."""
    run_evaluate(
        base=base,
        novel=novel,
        bank=bank,
        methods=methods,
        ways=ways,
        shots=shots,
        queries=queries,
        tasks=tasks,
        seed=seed,
        jobs=jobs,
        scheduler=scheduler,
        out=out,
        reference=reference,
        threshold=threshold,
        save_tasks=save_tasks,
        load_tasks=load_tasks,
        as_json=json,
    )


@app.command()
def tune(
    base: Base = None,
    val: Annotated[
        Path | None,
        typer.Option(help="Features of validation classes, neither base nor novel."),
    ] = None,
    bank: Bank = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values of a parameter, such as epsilon=0.01,0.02; repeat it.")
    ] = None,
    search: Annotated[str, typer.Option(help="grid, or random combinations.")] = "grid",
    candidates: Annotated[
        int | None, typer.Option(help="How many combinations a random search tries.")
    ] = None,
    ways: Ways = 5,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[int, typer.Option(help="Tasks that the last candidates see.")] = 1000,
    seed: Seed = 0,
    jobs: Jobs = -1,
    scheduler: Scheduler = None,
    out: Annotated[Path, typer.Option(help="File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[
        Path | None, typer.Option(help="Run folder, so that an interrupted search can go on.")
    ] = None,
    json: Json = False,
) -> None:
    """Choose parameters of H-OT on validation classes; weak candidates stop early."""
    run_tune(
        base=base,
        val=val,
        bank=bank,
        grid=grid or [],
        search=search,
        candidates=candidates,
        ways=ways,
        shots=shots,
        queries=queries,
        tasks=tasks,
        seed=seed,
        jobs=jobs,
        scheduler=scheduler,
        out=out,
        run=run,
        as_json=json,
    )


@app.command()
def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="A feature file of any format; FILE:PART is one of its parts.", show_default=False
        ),
    ],
    novel: Annotated[
        Path | None,
        typer.Argument(help="Novel classes, where FILE holds the base classes.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Look at feature files before using them: what is in them, what is wrong, and what follows for each method.

    Exit code 0 where nothing stops or spoils a method, 1 where a fault does, 2 where a file cannot be read.
    """
    run_inspect(file, novel, json)


@app.command()
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


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments by name; see --list.", metavar="[experiment]...")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="The whole paper.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    base: Base = None,
    novel: Novel = None,
    val: Annotated[
        Path | None, typer.Option(help="Features of validation classes, to tune H-OT on for one more row.")
    ] = None,
    bank: Bank = None,
    name: Annotated[
        str | None, typer.Option(help="Of the dataset, such as miniImageNet, for the figures of the paper.")
    ] = None,
    backbone: Annotated[str, typer.Option(help="Of the features, such as WRN28+RTloss.")] = "",
    other: Annotated[
        list[str] | None,
        typer.Option(
            help="Another dataset or backbone, NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE; several times."
        ),
    ] = None,
    ways: Annotated[
        int | None, typer.Option(help="Classes per task; 5, or those of the bank, by default.")
    ] = None,
    queries: Queries = 15,
    tasks: Annotated[
        int | None, typer.Option(help="Tasks of an evaluation; 2000, or 200 of an embedded bank, by default.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    out: Annotated[
        Path, typer.Option(help="Folder for tables and figures; the same command goes on with it.")
    ] = Path("reproduction"),
    json: Json = False,
) -> None:
    """Make tables and figures of the paper from your own features, beside the published ones."""
    # matplotlib and all that draws are slow to import, and nothing else needs them.
    from hotshot.cli.reproduce import Sources, run_list, run_reproduce
    from hotshot.experiments import EXPERIMENTS

    if list_all:
        run_list()
        return
    run_reproduce(
        list(EXPERIMENTS) if every else experiments or [],
        Sources(base, novel, val, bank, name, backbone, tuple(other or ())),
        {"ways": ways, "queries": queries, "seed": seed, "n_jobs": jobs},
        tasks=tasks,
        out=out,
        as_json=json,
    )


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of evaluate or reproduce.", metavar="run...", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
    base: Base = None,
    novel: Novel = None,
    bank: Bank = None,
    reference: Annotated[
        str | None, typer.Option(help="Method the others are compared to; the first by default.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Count tasks with an accuracy below this.")] = 0.5,
    tasks: Annotated[
        int, typer.Option(help="Tasks to look into, for each number of shots; 0 for none.")
    ] = 24,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    json: Json = False,
) -> None:
    """Make one self-contained page of runs; name the features where they have moved since."""
    from hotshot.cli.report import run_report

    run_report(
        runs=runs,
        out=out,
        base=base,
        novel=novel,
        bank=bank,
        reference=reference,
        threshold=threshold,
        tasks=tasks,
        title=title,
        as_json=json,
    )


Dataset = Annotated[
    Path | None,
    typer.Argument(
        help="Folder or archive of images; without one, characters are drawn.", show_default=False
    ),
]
Kind = Annotated[
    str,
    typer.Option(help="auto, or one of miniimagenet, tieredimagenet, cub, cifar-fs, omniglot, folder."),
]
Cache = Annotated[Path | None, typer.Option(help="Folder for decoded images; in OUT by default.")]
Device = Annotated[str, typer.Option(help="Of PyTorch, such as cuda.")]
SkipCorrupt = Annotated[bool, typer.Option("--skip-corrupt", help="Leave out images that cannot be read.")]


@app.command()
def train(
    dataset: Dataset = None,
    kind: Kind = "auto",
    backbone: Annotated[
        str, typer.Option(help="conv4, conv6, resnet10, resnet12, resnet18 or wrn28_10.")
    ] = "conv4",
    filters: Annotated[
        str | None,
        typer.Option(help="Narrower or wider: filters of its blocks, such as 32 or 32,64,128,256."),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Side of the input in pixels; 84, or 32 for drawn characters.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="60 by default, 10 for drawn characters.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 128,
    optimiser: Annotated[str, typer.Option(help="sgd or adam.")] = "sgd",
    learning_rate: Annotated[float, typer.Option(help="At the start.")] = 0.05,
    weight_decay: Annotated[float, typer.Option(help="Of all weights.")] = 5e-4,
    schedule: Annotated[str, typer.Option(help="cosine, steps or constant.")] = "cosine",
    label_smoothing: Annotated[float, typer.Option(help="Share of the loss spread over all classes.")] = 0.0,
    rotation: Annotated[bool, typer.Option("--rotation", help="Learn rotations too, as S2M2_R.")] = False,
    mixup: Annotated[float, typer.Option(help="Strength of manifold mixup, 2 in S2M2.")] = 0.0,
    flip: Annotated[
        bool | None,
        typer.Option(help="Mirror half of the images; by default for all datasets but those of characters."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for checkpoints; the same command goes on with it.")
    ] = Path("backbone"),
    cache: Cache = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    json: Json = False,
) -> None:
    """Train a backbone on the base classes of a dataset; interrupted training goes on where it stopped."""
    with needs_images():
        from hotshot.backbones import options_for
        from hotshot.cli.train import run_train
        from hotshot.training import Recipe
    drawn = dataset is None
    side = size or (32 if drawn else 84)
    narrowed = {} if filters is None else {"filters": _one_or_several(filters)}
    recipe = Recipe(
        backbone=backbone,
        options={**options_for(backbone, side), **narrowed},
        size=side,
        epochs=epochs or (10 if drawn else 60),
        batch_size=batch_size,
        optimiser=optimiser,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        schedule=schedule,
        label_smoothing=label_smoothing,
        rotation=rotation,
        mixup=mixup,
        seed=seed,
    )
    run_train(
        dataset=dataset,
        kind=kind,
        recipe=recipe,
        flip=flip,
        out=out,
        cache=cache,
        device=device,
        skip_corrupt=skip_corrupt,
        as_json=json,
    )


@app.command()
def extract(
    dataset: Dataset = None,
    kind: Kind = "auto",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Checkpoint of hotshot train, such as backbone/best.")
    ] = None,
    pretrained: Annotated[
        str | None, typer.Option(help="Instead: efficientnet-lite0, or minilm for a CSV file of text,label.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Instead: weights that others published, for --backbone or --network."),
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Network of --weights, such as wrn28_10.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Instead: a module of your own as package.module:name or file.py:name, or an ONNX file."
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Side of its input in pixels; 84, or what an ONNX file says.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for one feature file per split.")] = Path("features"),
    cache: Cache = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite feature files.")] = False,
    json: Json = False,
) -> None:
    """Take features of all images of a dataset, into one file per split that evaluate reads."""
    with needs_images():
        from hotshot.cli.extract import run_extract
    run_extract(
        dataset=dataset,
        kind=kind,
        checkpoint=checkpoint,
        pretrained=pretrained,
        weights=weights,
        backbone=backbone,
        network=network,
        size=size,
        out=out,
        cache=cache,
        device=device,
        skip_corrupt=skip_corrupt,
        force=force,
        as_json=json,
    )


def _one_or_several(text: str) -> int | list[int]:
    found = numbers(text, "--filters")
    return found[0] if len(found) == 1 else found


@contextmanager
def needs_images() -> Iterator[None]:
    """Say in one sentence what to install where PyTorch or Pillow is missing."""
    keep_freed_memory()
    try:
        yield
    except ImportError as error:
        raise RunError(
            f"This command needs PyTorch and Pillow ({error}): pip install 'hotshot[images]'."
        ) from None
