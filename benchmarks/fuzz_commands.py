"""Fuzzed command lines: a command must succeed or fail with an error message.

One or two options or arguments of a small valid command line are given hostile values; sometimes an input file is
damaged instead. Options and arguments are those that the program lists. A finding is printed with the command that
repeats it: a traceback, a crash, too much time or memory, an undocumented exit code, control characters in the output,
a file written outside the working folder.

Each command runs in a fork of one process that has imported everything, in a folder of its own. No value is a path
where root could do harm: devices are made in the folder.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.shared import Seed, say

SECONDS, CPU_SECONDS = 90, 60
MEMORY, LARGEST_FILE, MOST_PROCESSES = 3 * 2**30, 2**28, 300
EXIT_CODES = {0, 2, 130}
# `inspect` exits with 1 if a file has faults.
MORE_EXIT_CODES = {"inspect": {1}}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Small valid lines by command, arguments first; other commands run without any. They use few samples, so ways, queries
# and tasks are few too.
FEW = "--ways 2 --queries 2 --tasks 2 --jobs 1"
FILES = f"--base base.npz --novel novel.npz {FEW}"
TRAIN = "images --size 16 --epochs 1 --filters 2 --batch-size 4"
VALID = {
    "demo": ["--ways 2 --queries 2 --tasks 2 --shots 1 --methods hot,centroid"],
    "evaluate": [
        f"{FILES} --shots 1 --methods hot,centroid",
        f"{FILES} --shots 1 --methods bd-cspn,centroid --batch",
        f"{FILES} --shots 1 --methods free-lunch,tuned=tuned.json",
        f"{FILES} --shots 1 --methods hot,centroid --out run",
        f"--base base.bank --novel novel.npz {FEW} --shots 1 --methods hot",
    ],
    "tune": [f"--base base.npz --val novel.npz {FEW} --shots 1 --grid mix=0.2,0.4"],
    "inspect": ["base.npz", "base.npz novel.npz"],
    "convert": [
        "base.npz converted.safetensors",
        "base.npz converted.bank --no-samples --covariance pooled",
        "plain.npy converted.csv --labels plain.labels.npy",
    ],
    "train": [TRAIN, f"{TRAIN} --out backbone"],
    "extract": [
        "images --encoder backbone/best",
        "images --encoder conv4@weights.pt --size 16",
        "images --encoder network.py:make --size 16",
        "images --encoder network.onnx --size 16",
    ],
    "reproduce": [f"costs {FILES}", f"costs {FILES} --out all"],
    "bank merge": ["base.bank novel.bank --out merged.bank"],
    "bank compact": ["base.bank -o small.bank"],
    "export": ["one.model one.onnx"],
    "report": ["run --tasks 1", "all --tasks 1", "run all --tasks 0"],
}

NUMBERS = [
    "0", "-1", "1", "2", "1.5", "1e999", "1e-999", "nan", "-inf", "1e308", "1e-320", "0x10", "9" * 23, "-" + "9" * 23,
    "9" * 5000, "٣", "²", "1_0", " 7 ", "+5", "1e3", "true", "null",
]  # fmt: skip
LISTS = [
    ",", "1,1", "1,", "1,,2", "1,2,3", "0,1", "1,nan", "1," * 50_000 + "1", "a=b", "=", "=1", "epsilon=", "epsilon=nan",
    "epsilon=0,-1,1e999", "epsilon=[1]", "mix=null", "n_generated=99999999999999999999", "n_components=0",
    "power=1e300", "C=1e-300,1e300", "head=sampled,x", "base=1", "cost=cosine", "covariance=dense", "n_retrieved=0",
    f"C={','.join(map(str, range(1, 120_000)))}",
]  # fmt: skip
TEXTS = [
    "", " ", "\n", "a b", "-", "--", "-x", "--help", "%s%n%d", "{0.__class__}", "[bold]x[/bold]", "[/]",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\r", "\x7f", "\x85", "\u202e", "日本", "😀", "\udcff\udcfe", "'", '"',
    "`id`", "$(id)", "; id", "</script>", "x" * 100_000, "auto", "none", "cpu", "cuda", "meta", "cpu:1", "conv4", "hot",
    "hot,hot", "svm,x=", "float16", "int8", "diagonal", "omniglot", "folder", "tcp://127.0.0.1:1", "os:system",
    "torch.nn:Linear", "torch:zeros", "network.py:nothing", "network.py:fails", "network.py:", ":", "a:b:c",
    "broken.py:make", "base.npz:X", "parts.npz:base", "parts.npz:nothing", "x=base.npz,novel.npz", "x=,",
]  # fmt: skip
PATHS = [
    ".", "..", "../outside", "/proc/self/mem", "/proc/nothing/x", "/sys", "null", "zero", "full", "null/x", "folder",
    "folder/new", "nowhere/below/it", "empty", "fifo", "secret", "loop", "dangling", "base.npz/below", "text.txt",
    "words.csv", "words.json", "picture.png", "network.py", "network.onnx", "weights.pt", "base.npz", "novel.npz",
    "parts.npz", "plain.npy", "base.bank", "tuned.json", "run", "run/run.json", "all", "backbone", "backbone/best",
    "images", "images/train", "one.model", "new.csv", "new.npy", "new.mat", "new.parquet", "new.pkl", "new.bank",
    "new.npz", "a/b/c/d", "x" * 256, "x" * 250 + ".npz", "/".join("d" * 2000), "new\x1b[31m.npz", "new\n.npz",
    "[bold]new.npz", "new%s.npz", "-new.npz", "~/x", "$HOME/x", "\udcff.npz",
]  # fmt: skip
VALUES = {"number": NUMBERS, "list": LISTS, "text": TEXTS, "path": PATHS}
# Replacements for a value in a JSON file.
DOCUMENTS: list[Any] = [
    None, True, 0, -1, 1.5, 10**20, 10**400, float("nan"), float("inf"), 1e308, "", "x", "\x1b[31m", "9" * 50, "../x",
    "fifo", [], {}, [None], {"a": 1}, [[]], "\ud800", 2**31, 2**63, -(2**70), "nan", "1e999",
]  # fmt: skip


def main(
    seconds: Annotated[float, typer.Option(help="Time limit.")] = 300,
    cases: Annotated[int, typer.Option(help="Number of command lines, at most.")] = 20_000,
    seed: Seed = 0,
    only: Annotated[int | None, typer.Option(help="Run only the line with this number and print its result.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
) -> None:
    codes: Counter[int] = Counter()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hotshot-fuzz-commands-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        warm_up(root)
        if only is not None:
            print(json.dumps(test(root, seed, float("inf"), only), indent=1))
            return
        until = time.monotonic() + seconds
        with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
            for number, result in enumerate(pool.map(partial(test, root, seed, until), range(cases))):
                if result is None:
                    break
                codes[result["code"]] += 1
                if result["finding"] is None:
                    continue
                kind = f"{result['line'].split()[1]}: {result['finding']}"
                found[kind] += 1
                if found[kind] == 1:
                    say(f"{kind}\n  {result['line']}")
                    say(f"  to repeat it: python -m benchmarks fuzz_commands --seed {seed} --only {number}")
    for kind, times in found.items():
        say(f"{times:5d} x {kind}")
    say(", ".join(f"exit code {code}: {times}" for code, times in sorted(codes.items())))
    say(f"{codes.total()} command lines, seed {seed}: {len(found)} findings.")
    sys.exit(bool(found))


# --- command lines


@dataclass(frozen=True)
class Line:
    """A command line, and how a file in its folder is damaged before it runs (None: not at all)."""

    command: str
    arguments: tuple[str, ...]
    damage: str | None = None

    def __str__(self) -> str:
        damage = f"  # with {self.damage}" if self.damage else ""
        return " ".join(["hotshot", *map(_quoted, self.arguments)]) + damage


def _quoted(text: str) -> str:
    """A word quoted for bash, shortened if it is very long."""
    quoted = shlex.quote(text) if text.isprintable() else "$" + repr(text)
    return quoted if len(quoted) <= 300 else f"{quoted[:80]}…({len(text)} characters)"


def commands() -> dict[str, list[Any]]:
    """Options and arguments of every command, as the program lists them; a command in a group has two words."""
    from typer.main import get_command

    from hotshot.cli.app import app

    found = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        for inner, own in getattr(command, "commands", {"": command}).items():
            found[f"{name} {inner}".strip()] = own.params
    return found


def draw_line(rng: random.Random, known: dict[str, list[Any]]) -> Line:
    """A valid line with one or two hostile values, or with a damaged file."""
    command = rng.choice(sorted(known))
    words = rng.choice(VALID.get(command, [""])).split()
    n_arguments = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    arguments, options = words[:n_arguments], words[n_arguments:]
    damaged = rng.random() < 0.2
    for _ in range(0 if damaged else rng.choice((1, 1, 2))):
        param = rng.choice(known[command])
        if param.param_type_name == "argument":
            at = rng.randrange(len(arguments) + 1)
            arguments[at : at + 1] = [draw_value(rng, "path")]
        elif getattr(param, "is_flag", False):
            options.append(rng.choice([*param.opts, *param.secondary_opts]))
        else:
            name, value = rng.choice(param.opts), draw_value(rng, _kind(param))
            options += [f"{name}={value}"] if name.startswith("--") and rng.random() < 0.3 else [name, value]
    if rng.random() < 0.2:
        options.append("--json")
    # Words after two dashes are never options.
    positional = ["--", *arguments] if arguments and rng.random() < 0.2 else arguments
    return Line(command, (*command.split(), *options, *positional), str(rng.getrandbits(40)) if damaged else None)


def _kind(param: Any) -> str:
    """The kind of value that an option takes; versions of Typer keep its type in different places."""
    kind = str(getattr(param, "type", None) or getattr(param, "type_descriptor", ""))
    if re.search(r"\b(int|float)", kind, re.IGNORECASE):
        return "number"
    return "path" if "path" in kind.lower() else "text"


def draw_value(rng: random.Random, kind: str) -> str:
    """A hostile value, mostly of the kind that the option takes; text may be a list of numbers."""
    kinds = ["text", "list"] if kind == "text" else [kind]
    return rng.choice(VALUES[rng.choice(kinds if rng.random() < 0.7 else sorted(VALUES))])


# --- files in the working folder


def make_files(folder: Path) -> None:
    """Write the input files of valid lines, and other files, into the working folder."""
    import numpy as np
    import onnx
    import torch
    from PIL import Image

    from hotshot import BaseClasses, HOTClassifier
    from hotshot.images.backbones import create

    rng = np.random.default_rng(0)
    for name, classes in (("base", ["a", "b", "\x1b[1mc", "d"]), ("novel", ["w", "\x1b[31mx\n", "[bold]y[/]", "z"])):
        np.savez(folder / f"{name}.npz", X=rng.random((32, 6)).astype(np.float32), y=np.repeat(classes, 8))
    X, y = rng.random((32, 6)), np.repeat(["a", "b", "\x1b[1mc", "d"], 8)
    HOTClassifier(BaseClasses.from_samples(X, y)).fit(X, np.char.add(y, "[/]")).save(folder / "one.model")
    parts = {f"{letter}_{part}": array for part, array in (("base", 0), ("novel", 1)) for letter in "Xy" for array in [
        rng.random((8, 3)) if letter == "X" else np.repeat([array, array + 5], 4)]}  # fmt: skip
    np.savez(folder / "parts.npz", **parts)
    np.save(folder / "plain.npy", rng.random((8, 3)))
    np.save(folder / "plain.labels.npy", np.repeat([0, 1], 4))
    for split in ("train", "val", "test"):
        for name in "ab":
            (folder / "images" / split / f"{split}{name}").mkdir(parents=True)
            for i in range(4):
                pixels = rng.integers(0, 255, size=(18, 20, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / "images" / split / f"{split}{name}" / f"{i}.png")
    shutil.copy(folder / "images/train/traina/0.png", folder / "picture.png")
    torch.save(create("conv4").state_dict(), folder / "weights.pt")
    (folder / "network.py").write_text(
        "import torch\n\n\ndef make():\n    return torch.nn.Conv2d(3, 2, 3)\n\n\n"
        "class fails(torch.nn.Module):\n    def forward(self, x):\n        raise KeyError('x')\n"
    )
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    image = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, None, None])
    mean = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 3, 1, 1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("GlobalAveragePool", ["x"], ["y"])], "g", [image], [mean])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "network.onnx")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "text.txt").write_text("no features\n")
    (folder / "words.csv").write_text("text,label\na b,x\nc d,y\n")
    (folder / "words.json").write_text("{}")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("not/there")
    (folder / "secret").write_text("secret")


IMPORTED = (
    "distributed", "matplotlib.font_manager", "onnxruntime", "pyarrow.parquet", "scipy.io", "hotshot.cli.app",
    "hotshot.images.extraction", "hotshot.images.training", "hotshot.paper.experiments", "hotshot.report",
)  # fmt: skip
MAKING = (
    "convert base.npz base.bank",
    "convert novel.npz novel.bank",
    f"evaluate {VALID['evaluate'][0]} --out run",
    f"tune {VALID['tune'][0]} --out tuned.json",
    f"train {TRAIN} --out backbone",
    f"reproduce {VALID['reproduce'][1]}",
)


def damage(folder: Path, seed: str) -> str:
    """Damage one file in the folder; returns a description of the damage."""
    from hotshot.evaluation import journal

    rng = random.Random(seed)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and "images/" not in str(p))
    documents = [p for p in files if p.suffix in (".json", ".jsonl")]
    path = rng.choice(rng.choice([files, documents, documents]))
    data = path.read_bytes()
    how = rng.choice(["value", "value", "value", "bytes", "end", "empty", "fifo", "folder", "other", "digits", "deep"])
    if how == "value" and path.suffix == ".json":
        data = json.dumps(_with_other_value(rng, json.loads(data))).encode()
    elif how == "value" and path.suffix == ".jsonl" and data:
        lines = data.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        # With a correct checksum.
        lines[at] = journal.encode(_with_other_value(rng, journal.decode(lines[at].rstrip())))
        data = b"".join(lines)
    elif how == "digits":
        data = re.sub(rb"\d+", b"9" * rng.choice((25, 400, 5000)), data, count=rng.choice((0, 1)))
    elif how == "deep":
        data = b"[" * 100_000
    elif how == "empty":
        data = b""
    elif how == "end":
        data = data[: rng.randrange(len(data) + 1)]
    elif how == "other":
        data = rng.choice(files).read_bytes()
    else:
        for _ in range(rng.choice((1, 1, 8))):
            at = rng.randrange(len(data) + 1)
            data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    path.unlink()
    if how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.write_bytes(data)
    return f"{path.relative_to(folder)}: {how}"


def _with_other_value(rng: random.Random, document: Any) -> Any:
    """The document with one value replaced, at any depth."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.1:
        return rng.choice(DOCUMENTS)
    key = rng.choice(list(document)) if isinstance(document, dict) else rng.randrange(len(document))
    document[key] = _with_other_value(rng, document[key])
    return document


# --- one command in a fork


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative for a signal), what it printed, and stray files."""

    code: int
    stdout: str
    stderr: str
    stray: tuple[str, ...] = ()


def run(arguments: tuple[str, ...], case: Path) -> Outcome:
    """Run a command in `case/work`, within its limits."""
    process = os.fork()
    if process == 0:
        _run_command(arguments, case)
    until = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done or time.monotonic() > until:
            break
        time.sleep(0.005)
    # Workers that are still running.
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status) if done else -signal.SIGALRM
    if not done:
        os.waitpid(process, 0)
    stdout, stderr = ((case / name).read_bytes().decode(errors="backslashreplace") for name in ("stdout", "stderr"))
    kept = [path for place in (case, case / "home", case / "tmp") for path in place.iterdir()]
    # A command that was killed leaves its temporary files. PyTorch makes an empty folder for itself.
    stray = {str(path.relative_to(case)) for path in kept if code in EXIT_CODES or path.parent != case / "tmp"}
    stray -= {"work", "home", "tmp", "stdout", "stderr"}
    return Outcome(code, stdout, stderr, tuple(sorted(name for name in stray if "torchinductor" not in name)))


def _run_command(arguments: tuple[str, ...], case: Path) -> None:
    """In the fork: run the command and exit."""
    code = 1
    try:
        os.setsid()
        os.chdir(case / "work")
        for number, path in enumerate((os.devnull, case / "stdout", case / "stderr")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT * bool(number)), number)
        os.environ |= {"HOME": str(case / "home"), "TMPDIR": str(case / "tmp"), "JOBLIB_TEMP_FOLDER": str(case / "tmp")}
        tempfile.tempdir = None
        # Speed: files need not reach the disk.
        os.fsync = lambda _: None
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        for what, limit in (
            (resource.RLIMIT_AS, used + MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_FSIZE, LARGEST_FILE), (resource.RLIMIT_NPROC, MOST_PROCESSES), (resource.RLIMIT_CORE, 0),
        ):  # fmt: skip
            resource.setrlimit(what, (limit, limit))
        sys.argv = ["hotshot", *arguments]
        from hotshot.cli import main as hotshot

        try:
            hotshot()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def judge(line: Line, outcome: Outcome) -> str | None:
    """The description of a finding; None if there is none."""
    printed = outcome.stdout + outcome.stderr
    if "Traceback (most recent call last)" in printed:
        own = re.findall(r'File ".*/(hotshot/[^"]*)", line (\d+)', printed)
        place = ":".join(own[-1]) if own else "outside hotshot"
        last = next((text for text in reversed(printed.splitlines()) if re.match(r"[\w.]+(:|$)", text)), "")
        return f"traceback: {last.split(':')[0]} at {place}"
    if outcome.code == -signal.SIGALRM:
        return f"more than {SECONDS} s"
    if outcome.code < 0:
        return f"killed by {signal.Signals(-outcome.code).name}"
    if outcome.code not in EXIT_CODES | MORE_EXIT_CODES.get(line.command, set()):
        return f"exit code {outcome.code}"
    if "hotshot: Not enough memory" in outcome.stderr:
        return "too much memory"
    if outcome.code == 2 and not outcome.stderr.strip():
        return "exit code 2 without an error message"
    if found := CONTROL.search(printed):
        return f"control character {found[0]!r}"
    elsewhere = any(".." in word or "/" in word[:1] or "=/" in word for word in line.arguments)
    if outcome.stray and not elsewhere:
        names = ", ".join(re.sub("[0-9a-f]{6,}|[0-9]+", "#", name) for name in outcome.stray[:3])
        return f"writes {names} outside its folder"
    return None


# --- many commands


def prepare_case(inputs: Path, case: Path) -> None:
    """Make a new folder for a case, with a copy of the input files."""
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(inputs, case / "work", symlinks=True)
    (case / "home").mkdir()
    (case / "tmp").mkdir()
    os.mkfifo(case / "work" / "fifo")
    for name, minor in (("null", 3), ("zero", 5), ("full", 7)):
        device = case / "work" / name
        if os.getuid() == 0:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        else:
            device.symlink_to(f"/dev/{name}")
    (case / "work" / "secret").chmod(0)


def test(root: Path, seed: int, until: float, number: int) -> dict[str, Any] | None:
    """The result of line `number`; None when the time is over."""
    if time.monotonic() > until:
        return None
    line = draw_line(random.Random(f"{seed} {number}"), commands())
    case = root / f"case-{os.getpid()}"
    prepare_case(root / "inputs", case)
    shown = line
    if line.damage:
        shown = Line(line.command, line.arguments, damage(case / "work", line.damage))
    outcome = run(line.arguments, case)
    finding = judge(line, outcome)
    return {"code": outcome.code, "line": str(shown), "finding": finding, "end of stderr": outcome.stderr[-3000:]}


def warm_up(root: Path) -> None:
    """Import what the commands import, and make the input files."""
    os.environ |= dict.fromkeys(SINGLE_THREAD, "1")
    for name in IMPORTED:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    inputs = root / "inputs"
    for name in ("inputs", "making/home", "making/tmp"):
        (root / name).mkdir(parents=True)
    (root / "making" / "work").symlink_to(inputs)
    make_files(inputs)
    for line in MAKING:
        made = run(tuple(line.split()), root / "making")
        if made.code:
            sys.exit(f"The valid command hotshot {line} failed: {made.stderr}")
