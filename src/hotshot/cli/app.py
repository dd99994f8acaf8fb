"""All commands in one program: groups, examples, and one sentence for every error."""

import io
import logging
import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from hotshot.cli.convert import bank, convert, export
from hotshot.cli.demo import demo
from hotshot.cli.evaluate import evaluate, tune
from hotshot.cli.extract import extract, train
from hotshot.cli.inspect import inspect
from hotshot.cli.options import epilog
from hotshot.cli.predict import add, explain, fit, predict, remove, suggest, undo
from hotshot.cli.report import report, reproduce
from hotshot.cli.terminal import Console
from hotshot.errors import HotshotError, InterruptedRunError
from hotshot.formatting import shortened
from hotshot.version import __version__

# Commands by group, in the order of `hotshot --help`, with examples for the end of their own help.
COMMANDS: dict[str, dict[Callable[..., None], tuple[str, ...]]] = {
    "Use": {
        demo: ("hotshot demo --bank omniglot",),
        fit: ("hotshot fit --base old.csv --support new.csv --encoder minilm -o intents.model",
              "hotshot fit questions.csv --few 5 --encoder minilm -o intents.model"),
        predict: ("hotshot predict intents.model questions.csv --reject 0.05 -o answers.csv",
                  "hotshot predict intents.model inbox.csv --batch -o answers.csv"),
        explain: ('hotshot explain intents.model "My card was stolen"',
                  "hotshot explain intents.model questions.csv --html explained.html"),
        suggest: ("hotshot suggest intents.model inbox.csv -n 5 -o to-label.csv",),
        add: ("hotshot add intents.model more.csv",),
        remove: ('hotshot remove intents.model "lost card"',
                 'hotshot remove intents.model --sample "Where is my card?"'),
        undo: ("hotshot undo intents.model",),
        export: ("hotshot export intents.model intents.onnx",),
    },
    "Measure": {
        evaluate: ("hotshot evaluate --base base.npz --novel novel.npz --out run",
                   "hotshot evaluate --bank banking77 --methods hot,logistic --tasks 200"),
        tune: ("hotshot tune --base base.npz --val val.npz --grid mix=0.3,0.5,0.7",),
        inspect: ("hotshot inspect base.npz novel.npz", "hotshot inspect intents.model"),
        report: ("hotshot report run -o report.html",),
        reproduce: ("hotshot reproduce --all --base base.npz --novel novel.npz --name miniImageNet",),
    },
    "Prepare": {
        convert: ("hotshot convert base.plk base.safetensors --extractor WRN-28-10",),
        extract: ("hotshot extract birds.tar --encoder efficientnet-lite0",
                  "hotshot extract questions.csv --encoder minilm"),
        train: ("hotshot train birds.tar --backbone resnet12 --out backbone",),
    },
}  # fmt: skip
FAILED, INTERRUPTED = 2, 130
# Longer sentences, because of what they quote, are shortened.
LONGEST_SENTENCE = 2000

app = typer.Typer(
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group, commands in COMMANDS.items():
    for command, examples in commands.items():
        app.command(rich_help_panel=group, epilog=epilog(*examples))(command)
app.add_typer(bank, name="bank", rich_help_panel="Prepare")


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
    Console(stderr=True, soft_wrap=True).print(f"hotshot: {short}", style="red", markup=False)
    sys.exit(code)
