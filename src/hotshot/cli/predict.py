"""`hotshot predict`, `hotshot explain` and `hotshot suggest`: what a model says of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hotshot.cli import options
from hotshot.cli.options import argument, number, option
from hotshot.cli.terminal import Console, InputProgress, print_json, print_notes, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import count, percentage, quoted

if TYPE_CHECKING:
    from hotshot.inputs import InputClassifier


def _load(
    model: Path, data: str | None, out: Path | None, force: bool, encoder: str | None, device: str
) -> InputClassifier:
    with waiting("starting"):
        from hotshot.inputs import InputClassifier
    if out is not None:
        options.refuse_existing(out, force, model, data, encoder)
    loaded = InputClassifier.load(model, device=device, encoder=encoder)
    if out is not None:
        options.refuse_overwriting(out, loaded.encoder)
    return loaded


def predict(
    model: options.Model,
    data: Annotated[
        str,
        argument(
            "Inputs: a table of texts or one text, an image or a folder of images, or features; - for standard input."
        ),
    ],
    out: Annotated[
        Path | None,
        option("File for the answers: .csv, .tsv, .jsonl or .parquet. Default: standard output.", "--out", "-o"),
    ] = None,
    reject: Annotated[
        float | None, number("Reject inputs that fit no class, with this rate of false alarms, such as 0.05.")
    ] = None,
    unknown: Annotated[str, option("Answer for rejected inputs.")] = "none of these",
    batch: Annotated[
        bool,
        option(
            "Classify the inputs jointly, in proportions that are estimated: more accurate for many inputs that belong "
            "together. At most 50,000 at a time.",
            "--batch",
        ),
    ] = False,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    prefix: Annotated[str, option("Prefix for the names of the answer columns.")] = "",
    form: Annotated[
        str | None, option("Output format: csv, tsv, jsonl or parquet. Default: by suffix.", "--format")
    ] = None,
    strict: options.Strict = False,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
) -> None:
    """Classify inputs: class, probability, runner-up and outlier score of each."""
    with waiting("starting"):
        from hotshot.files.tables import format_of
        from hotshot.inputs import Columns
        from hotshot.inputs.answers import ERROR, write_answers
    form = format_of(out, form)
    loaded = _load(model, data, out, force, encoder, device)
    inputs = loaded.opened_line(data, Columns(text, label, id_))
    with InputProgress("classifying") as progress:
        for done in write_answers(
            loaded, inputs, out, form, reject=reject, unknown=unknown, batch=batch, prefix=prefix, strict=strict,
            watch=progress.watch,
        ):  # fmt: skip
            progress.printed = done.inputs if out is None else 0
    print_notes(Console(stderr=True), progress.notes)
    none = f", of which {done.rejected:,} {quoted(unknown)}" if reject is not None else ""
    sentences = [f"{'' if out is None else f'{out}: '}{count(done.inputs - done.unreadable, 'answer')}{none}."]
    if done.unreadable:
        verb = "was" if done.unreadable == 1 else "were"
        sentences.append(
            f"{done.unreadable:,} of {count(done.inputs, 'input')} {verb} not read: see column {prefix}{ERROR}."
        )
    if done.has_labels:
        agree = percentage(done.agreeing / done.labelled)
        sentences.append(f"{agree} of the {done.labelled:,} labels in the input agree (they were not used).")
    Console(stderr=True).say(" ".join(sentences))


def explain(
    model: options.Model,
    data: Annotated[
        str | None,
        argument("A text, an image, or a file of inputs. Without it, what each new class borrows from old ones."),
    ] = None,
    rows: Annotated[int, number("Maximum number of inputs to explain.")] = 5,
    reject: Annotated[float | None, number("Reject inputs that fit no class, as hotshot predict does.")] = None,
    numbers: Annotated[bool, option("Add the parts of the difference between the two logits.", "--numbers")] = False,
    html: Annotated[Path | None, option("File for an HTML page with inputs and examples.")] = None,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Explain predictions: the closest examples, the runner-up, and the old classes that lend."""
    if data is None and (html is not None or reject is not None):
        raise ParameterError("--html and --reject need inputs: pass a text, an image or a file.")
    loaded, console = _load(model, data, html, force, encoder, device), Console(stderr=True)
    from hotshot.files.atomic import write_text
    from hotshot.inputs import Columns

    if data is None:
        loans = loaded.loans()
        print_json(loans.to_dict()) if json else print(loans)
        return
    inputs = loaded.opened_line(data, Columns(text, label, id_))
    with InputProgress("encoding") as progress:
        explained = loaded.explain(inputs, rows, reject=reject)
    print_notes(console, progress.notes)
    if json:
        print_json(explained.to_dict())
    if html is not None:
        write_text(html, explained.to_html(f"Answers of {model.name}, explained"))
        console.print(f"{html}: {count(len(explained.queries), 'answer')} explained.", markup=False)
    elif not json:
        Console().say(explained.in_words(numbers=numbers))


def suggest(
    model: options.Model,
    data: Annotated[
        Path, argument("Unlabelled inputs: a table of texts, a folder of images, or features; - for standard input.")
    ],
    number: Annotated[int, number("Number of suggestions.", "--number", "-n")] = 5,
    out: Annotated[
        Path | None,
        option("Table to fill in (.csv, .tsv, .jsonl or .parquet): label it, then run hotshot add.", "--out", "-o"),
    ] = None,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Suggest which inputs to label next, with reasons."""
    with waiting("starting"):
        from hotshot.files.tables import format_of
        from hotshot.inputs import Columns
        from hotshot.inputs.answers import FOR_SUGGESTIONS, check_columns
    format_of(out, None)
    loaded, console = _load(model, str(data), out, force, encoder, device), Console(stderr=True)
    inputs = loaded.opened(data, columns=Columns(text, label, id_))
    if out is not None:
        check_columns(inputs, FOR_SUGGESTIONS, "rename it")
    with InputProgress("encoding") as progress:
        suggested = loaded.suggest(inputs, number, watch=progress.watch)
    print_notes(console, progress.notes)
    if json:
        print_json(suggested.to_dict())
    else:
        Console().say(str(suggested))
    if out is not None:
        suggested.write(out, with_features=loaded.encoder is None)
        console.say(
            f"{out}: {count(len(suggested.ids), 'suggestion')}. Fill in the column {inputs.label or 'label'}, then "
            f"run: hotshot add {model} {out}"
        )
