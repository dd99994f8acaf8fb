"""All commands in one: the module of a command is imported when it is called."""

import io
import logging
import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hotshot.errors import HotshotError, InterruptedRunError
from hotshot.formatting import shortened
from hotshot.version import __version__

# Name of a command: the module of `hotshot.cli` that holds it under this name, as a function or a `typer.Typer`, the
# first line of its help, and examples for the end of its help.
COMMANDS: dict[str, dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Use": {
        "demo": ("demo", "Compare H-OT with baselines on an embedded bank, and explain one prediction.",
                 ("hotshot demo --bank omniglot",)),
        "fit": ("fit", "Fit a model to old classes with many samples and new classes with a few.",
                ("hotshot fit --base old.csv --support new.csv --encoder minilm -o intents.model",
                 "hotshot fit questions.csv --few 5 --encoder minilm -o intents.model")),
        "predict": ("predict", "Classify inputs: class, probability, runner-up and outlier score of each.",
                    ("hotshot predict intents.model questions.csv --reject 0.05 -o answers.csv",
                     "hotshot predict intents.model inbox.csv --batch -o answers.csv")),
        "explain": ("explain", "Explain predictions: the closest examples, the runner-up, and the lenders.",
                    ('hotshot explain intents.model "My card was stolen"',
                     "hotshot explain intents.model questions.csv --html explained.html")),
        "suggest": ("suggest", "Suggest which inputs to label next, with reasons.",
                    ("hotshot suggest intents.model inbox.csv -n 5 -o to-label.csv",)),
        "add": ("grow", "Add new classes to a model, or samples to its classes, old or new.",
                ("hotshot add intents.model more.csv",)),
        "remove": ("grow", "Remove new classes, or single samples of them, from a model.",
                   ('hotshot remove intents.model "lost card"',
                    'hotshot remove intents.model --sample "Where is my card?"')),
        "undo": ("grow", "Undo the last add or remove.", ("hotshot undo intents.model",)),
        "export": ("export", "Export a model as ONNX, to use it without hotshot.",
                   ("hotshot export intents.model intents.onnx",)),
    },
    "Measure": {
        "evaluate": ("evaluate", "Compare the accuracy of methods on the same tasks. Interrupted runs resume.",
                     ("hotshot evaluate --base base.npz --novel novel.npz --out run",
                      "hotshot evaluate --bank banking77 --methods hot,logistic --tasks 200")),
        "tune": ("tune", "Tune parameters of H-OT on validation classes. Weak candidates stop early.",
                 ("hotshot tune --base base.npz --val val.npz --grid mix=0.3,0.5,0.7",)),
        "inspect": ("inspect", "Inspect feature files: contents, problems, and advice for each method; or a model.",
                    ("hotshot inspect base.npz novel.npz", "hotshot inspect intents.model")),
        "report": ("report", "Write an HTML report on one or more runs.",
                   ("hotshot report run -o report.html",)),
        "reproduce": ("reproduce", "Reproduce the paper's tables and figures with your own features.",
                      ("hotshot reproduce --all --base base.npz --novel novel.npz --name miniImageNet",)),
    },
    "Prepare": {
        "convert": ("convert", "Convert features to another format or to a bank; record their source.",
                    ("hotshot convert base.plk base.safetensors --extractor WRN-28-10",)),
        "bank": ("bank", "Merge banks, or compact a bank to share it.", ()),
        "extract": ("extract", "Extract features of images, one file per split, or of texts.",
                    ("hotshot extract birds.tar --encoder efficientnet-lite0",
                     "hotshot extract questions.csv --encoder minilm")),
        "train": ("train", "Train a backbone on the base classes of a dataset. Interrupted trainings resume.",
                  ("hotshot train birds.tar --backbone resnet12 --out backbone",)),
    },
}  # fmt: skip
MODULES = {name: module for rows in COMMANDS.values() for name, (module, *_) in rows.items()}
EXAMPLES = {name: examples for rows in COMMANDS.values() for name, (*_, examples) in rows.items()}
HELP = ["-h", "--help"]
FAILED, INTERRUPTED = 2, 130
# Longer sentences, because of what they quote, are shortened.
LONGEST_SENTENCE = 2000


def load_command(name: str) -> Any:
    """A command with its options, from its module."""
    own = getattr(import_module(f"hotshot.cli.{MODULES[name]}"), name)
    alone = typer.Typer(add_completion=False, callback=lambda: None)
    if isinstance(own, typer.Typer):
        alone.add_typer(own, name=name)
    else:
        alone.command(name, epilog=epilog(*EXAMPLES[name]))(own)
    return get_command(alone).commands[name]  # type: ignore[attr-defined]


def epilog(*examples: str) -> str:
    """Examples for the end of a help text, one per line."""
    return "\n\n".join(["Examples:" if len(examples) > 1 else "Example:", *examples])


class Commands(TyperGroup):
    """A group that lists its commands from the table, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name, the command and the arguments of a command line."""
        name, _, rest = super().resolve_command(ctx, args)
        if not ctx.resilient_parsing and not {*HELP} & {*rest}:  # Resilient: a shell asks for completions.
            from hotshot.cli.terminal import waiting

            with waiting("starting"):
                import_module("hotshot.inputs")  # And with it scikit-learn and SciPy, which take seconds.
        return name, load_command(str(name)), rest


app = typer.Typer(
    cls=Commands,
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
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


for group, rows in COMMANDS.items():
    for name, row in rows.items():
        app.command(name, help=row[1], rich_help_panel=group)(lambda: None)


def main() -> None:
    """Run the command line; an error is one sentence and exit code 2 (130 after Ctrl-C), never a traceback."""
    # joblib's helper process cleans up after a stopped run, and would warn about it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    # What other libraries tell of their models is not for the users of a command.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    logging.disable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and JSON may hold halves of surrogate pairs, which are no characters.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="hotshot")
    except InterruptedRunError as error:
        _stop(str(error), INTERRUPTED)
    except HotshotError as error:
        _stop(str(error))
    except OSError as error:
        named = "" if error.filename is None else f"{error.filename}: "
        _stop(f"{named}{error.strerror or error}: use another file or folder, or free disk space.")
    except RecursionError:
        _stop("A path or a file is nested too deeply: use another.")
    except MemoryError:
        _stop("Not enough memory: use less data, or ask for less at once.")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _stop(sentence: str, code: int = FAILED) -> NoReturn:
    """Print a sentence on one line, whatever it quotes, and end."""
    short = shortened(sentence, LONGEST_SENTENCE, "ends")
    from hotshot.cli.terminal import Console

    Console(stderr=True, soft_wrap=True).print(f"hotshot: {short}", style="red", markup=False)
    sys.exit(code)
