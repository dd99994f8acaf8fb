"""All commands in one: the module of a command is imported when it is called."""

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

# Name of a command: the module of `hotshot.cli` that holds it under this name, as a function or a `typer.Typer`, and
# the first line of its help.
COMMANDS = {
    "Use": {
        "demo": ("demo", "Compare H-OT with its baselines on features that come with hotshot; explain a prediction."),
        "fit": ("fit", "Fit a model to old classes with many samples and to new classes with a few."),
        "predict": ("predict", "Answer inputs: class, probability, runner-up, and how little each fits any class."),
        "explain": ("explain", "Explain answers: the closest examples, what base classes lent, and what decided."),
        "add": ("grow", "Add new classes, or samples of them, to a model."),
        "remove": ("grow", "Remove new classes from a model."),
        "export": ("export", "Write a model as an ONNX graph, or as JSON that a dozen lines of any language use."),
    },
    "Measure": {
        "evaluate": ("evaluate", "Accuracy of methods, paired on the same tasks. Interrupted runs resume."),
        "tune": ("tune", "Choose parameters of H-OT on validation classes; weak candidates stop early."),
        "inspect": ("inspect", "What is in feature files, what is wrong with them, and what follows for each method."),
        "report": ("report", "Make one self-contained page of runs; name the features where they have moved since."),
        "reproduce": ("reproduce", "Make the paper's tables and figures from your own features, beside the published."),
    },
    "Prepare": {
        "convert": ("convert", "Write features in another format, or as a bank, with where they come from in the "
                               "header."),
        "bank": ("bank", "Merge banks, or make one small enough to share."),
        "extract": ("extract", "Extract the features of a dataset of images, one file per split, or of texts."),
        "train": ("train", "Train a backbone on the base classes of a dataset. Interrupted trainings resume."),
    },
}  # fmt: skip
MODULES = {name: module for rows in COMMANDS.values() for name, (module, _) in rows.items()}
FAILED, INTERRUPTED = 2, 130
# A sentence that quotes more than this of what it got says no more.
LONGEST_SENTENCE = 2000


def load_command(name: str) -> Any:
    """A command with its options, from its module."""
    own = getattr(import_module(f"hotshot.cli.{MODULES[name]}"), name)
    alone = typer.Typer(add_completion=False, callback=lambda: None)
    if isinstance(own, typer.Typer):
        alone.add_typer(own, name=name)
    else:
        alone.command(name)(own)
    return get_command(alone).commands[name]  # type: ignore[attr-defined]


class Commands(TyperGroup):
    """A group that lists its commands from the table, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name, the command and the arguments of a command line."""
        name, _, rest = super().resolve_command(ctx, args)
        if ctx.resilient_parsing:  # A shell asks for completions.
            return name, load_command(str(name)), rest
        from hotshot.cli.terminal import waiting

        with waiting("starting"):
            return name, load_command(str(name)), rest


app = typer.Typer(
    cls=Commands,
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
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


for group, rows in COMMANDS.items():
    for name, (_, line) in rows.items():
        app.command(name, help=line, rich_help_panel=group)(lambda: None)


def main() -> None:
    """Run the command line; an error is one sentence and exit code 2 (130 after Ctrl-C), never a traceback."""
    # joblib's helper process, which cleans up after a run that was stopped, needs not tell of it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    try:
        app(prog_name="hotshot")
    except InterruptedRunError as error:
        _stop(str(error), INTERRUPTED)
    except HotshotError as error:
        _stop(str(error))
    except OSError as error:
        named = "" if error.filename is None else f"{error.filename}: "
        _stop(f"{named}{error.strerror or error}: name another file or folder, or make room.")
    except RecursionError:
        _stop("A path or a file is nested too deeply: name another.")
    except MemoryError:
        _stop("This needs more memory than there is: ask for less at once.")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _stop(sentence: str, code: int = FAILED) -> NoReturn:
    """Print a sentence on one line, whatever it quotes, and end."""
    short = shortened(sentence, LONGEST_SENTENCE, "ends")
    from hotshot.cli.terminal import Console

    Console(stderr=True, soft_wrap=True).print(f"hotshot: {short}", style="red", markup=False)
    sys.exit(code)
