"""`hotshot fit`, `hotshot add`, `hotshot remove` and `hotshot undo`: teach a model; all equals a fresh fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hotshot.cli import options
from hotshot.cli.options import argument, number, option
from hotshot.cli.terminal import Console, InputProgress, print_json, print_notes, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import count

if TYPE_CHECKING:
    from hotshot.inputs import InputClassifier


def fit(
    data: Annotated[
        Path | None, argument("Old and new classes in one file or folder; those with at most --few samples are new.")
    ] = None,
    base: Annotated[
        Path | None,
        option("Old classes with many samples: a table of texts, a folder of images per class, features or a bank."),
    ] = None,
    support: Annotated[Path | None, option("New classes with one to a few samples.")] = None,
    encoder: Annotated[str | None, option(f"{options.ENCODERS} Not needed for features.")] = None,
    out: Annotated[Path, option("Folder for the model.", "--out", "-o")] = Path("hotshot.model"),
    new_only: Annotated[bool, option("Predict new classes only.", "--new-only")] = False,
    settings: Annotated[Path | None, option("File of parameters from hotshot tune.")] = None,
    few: Annotated[int, number("Maximum samples of a new class, if old and new classes are in one file.")] = 10,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    strict: options.Strict = False,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Fit a model to old classes with many samples and new classes with a few."""
    if (data is None) == (support is None) or (data is not None and base is not None):
        raise ParameterError("Pass --base OLD and --support NEW, or one file with old and new classes.")
    options.refuse_existing(out, force, data, base, support, encoder, settings)
    with waiting("starting"):
        from hotshot.classifiers import load_parameters
        from hotshot.inputs import Columns, InputClassifier
    tuned = {} if settings is None else load_parameters(settings)
    model = InputClassifier(encoder, base, new_only=new_only, strict=strict, device=device, **tuned)
    columns = Columns(text, label, id_)
    with InputProgress("encoding") as progress:
        if data is not None:
            model.fit_together(data, few, columns=columns, watch=progress.watch)
        else:
            model.fit(support, columns=columns, watch=progress.watch)
        model.save(out, overwrite=force)
    _report(model, out, [*progress.notes, *_what_is_off(model)], json)


def add(
    model: options.Model,
    support: Annotated[
        Path, argument("Labelled samples of new or old classes; the folder of a class of images; - for standard input.")
    ],
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    strict: options.Strict = False,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    json: options.Json = False,
) -> None:
    """Add new classes to a model, or samples to its classes, old or new."""
    # The model is replaced as a whole.
    options.refuse_overwriting(model, support)
    with _changed(model, "encoding", json, device=device, encoder=encoder) as (changed, progress):
        from hotshot.inputs import Columns

        changed.strict = strict
        changed.add(support, columns=Columns(text, label, id_), watch=progress.watch)


def remove(
    model: options.Model,
    classes: Annotated[list[str] | None, argument("Names of the new classes to remove.")] = None,
    sample: Annotated[
        list[str] | None, option("Id or text of a sample of a new class to remove; may be repeated.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Remove new classes, or single samples of them, from a model."""
    if not (classes or sample):
        raise ParameterError("Nothing to remove: name new classes, or samples with --sample.")
    with _changed(model, "removing", json) as (changed, _):
        changed.remove(classes or [], samples=sample or [])


def undo(model: options.Model, json: options.Json = False) -> None:
    """Undo the last add or remove."""
    from hotshot.inputs import InputClassifier

    _report(InputClassifier.undo(model), model, [], json)


@contextmanager
def _changed(folder: Path, doing: str, json: bool, **how: Any) -> Iterator[tuple[InputClassifier, InputProgress]]:
    """The model in a folder, which is saved and reported after the block."""
    with waiting("starting"):
        from hotshot.inputs import InputClassifier
    with InputProgress(doing) as progress, InputClassifier.change(folder, **how) as model:
        yield model, progress
    _report(model, folder, progress.notes, json)


def _what_is_off(model: InputClassifier) -> list[str]:
    """What the model cannot do, why, and how it could, in a sentence; nothing if it can do all."""
    outliers = model.model.outliers_
    if outliers is not None and outliers.thresholds is not None:
        return []
    without = model.model.base is None
    off = "predict --reject, predict --batch and suggest are" if without else "predict --reject is"
    why = "they learn from old classes" if without else "it learns from many old classes"
    return [f"{off} off, because {why}: pass at least 20 old classes with 10 samples each, as --base or in one file."]


def _report(model: InputClassifier, out: Path, notes: Iterable[str], json: bool) -> None:
    print_notes(Console(stderr=True), notes)
    n_old, n_samples = len(model.classes) - len(model.new_classes), len(model.model.support_labels_)
    if json:
        numbers = {"old_classes": n_old, "new_classes": model.new_classes.tolist(), "samples": n_samples}
        print_json({"model": str(out), "encoder": model.encoder, **numbers, "left_out": model.unlabelled})
        return
    new = count(len(model.new_classes), "new class", "new classes")
    both = f"{count(n_old, 'old class', 'old classes')} and {new}" if n_old else new
    ignored = f" Ignored {count(model.unlabelled, 'row')} without a label." if model.unlabelled else ""
    Console().say(f"{out}: {both} ({count(n_samples, 'sample')}).{ignored}")
