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
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.fuzz_files import changed
from benchmarks.shared import Seed, forks, in_fork, make_images, printed, say

SECONDS, CPU_SECONDS = 90, 60
MEMORY, LARGEST_FILE, MOST_PROCESSES = 3 * 2**30, 2**28, 300
# `inspect` exits with 1 if a file has faults.
EXIT_CODES, MORE_EXIT_CODES = {0, 2, 130}, {"inspect": {1}}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

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
    "inspect": ["base.npz", "base.npz novel.npz", "one.model"],
    "fit": ["--base base.npz --support novel.npz -o new.model", "--support words.csv --text text -o new.model"],
    "predict": ["one.model novel.npz", "one.model novel.npz -o answers.csv --reject 0.05 --batch"],
    "explain": ["one.model novel.npz"],
    "add": ["one.model novel.npz"],
    "suggest": ["one.model novel.npz -n 2", "one.model novel.npz -o to-label.csv"],
    "convert": [
        "base.npz converted.safetensors",
        "base.npz converted.bank --no-samples --covariance pooled",
        "plain.npy converted.csv --labels plain.labels.npy",
    ],
    "train": [TRAIN, f"{TRAIN} --out backbone"],
    "extract": [
        f"images --encoder {encoder}"
        for encoder in ("backbone/best", "conv4@weights.pt --size 16", "network.py:make --size 16", "network.onnx")
    ],
    "reproduce": [f"costs {FILES}", f"costs {FILES} --out all"],
    "bank merge": ["base.bank novel.bank --out merged.bank"],
    "bank compact": ["base.bank -o small.bank"],
    "export": ["one.model one.onnx"],
    "report": ["run --tasks 1", "all --tasks 1", "run all --tasks 0"],
}
# Made at the start: the inputs of other commands.
MAKING = (
    "convert base.npz base.bank",
    "convert novel.npz novel.bank",
    "fit --base base.npz --support novel.npz -o one.model",
    f"evaluate {VALID['evaluate'][0]} --out run",
    f"tune {VALID['tune'][0]} --out tuned.json",
    f"train {TRAIN} --out backbone",
    f"reproduce {VALID['reproduce'][1]}",
)

# Hostile values by kind: a file of short ones, and long ones.
VALUES: dict[str, list[str]] = json.loads(Path(__file__).with_name("hostile_values.json").read_text("utf-8"))
VALUES["number"] += ["9" * 5000]
VALUES["list"] += ["1," * 50_000 + "1", f"C={','.join(map(str, range(1, 120_000)))}"]
VALUES["text"] += ["x" * 100_000]
VALUES["path"] += ["/".join("d" * 2000)]
# Replacements for a value in a JSON file.
DOCUMENTS: list[Any] = [
    *VALUES.pop("document"), None, True, 0, -1, 1.5, 10**20, 10**400, float("nan"), float("inf"), 1e308, [], {},
    [None], {"a": 1}, [[]], 2**31, 2**63, -(2**70),
]  # fmt: skip


def main(
    seconds: Annotated[float, typer.Option(help="Time limit.")] = 300,
    cases: Annotated[int, typer.Option(help="Number of command lines, at most.")] = 20_000,
    seed: Seed = 0,
    only: Annotated[int | None, typer.Option(help="Run only the line with this number and print its result.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
) -> None:
    codes: Counter[int] = Counter()
    findings: Counter[str] = Counter()
    # On the disk: a folder in memory may refuse devices.
    with forks(jobs, place=None) as (pool, root):
        warm_up(root)
        if only is not None:
            print(json.dumps(test(root, seed, float("inf"), only), indent=1))
            return
        until = time.monotonic() + seconds
        for number, result in enumerate(pool.map(partial(test, root, seed, until), range(cases))):
            if result is None:
                break
            codes[result["code"]] += 1
            if result["finding"] is not None:
                kind = f"{result['line'].split()[1]}: {result['finding']}"
                findings[kind] += 1
                if findings[kind] == 1:
                    say(f"{kind}\n  {result['line']}")
                    say(f"  to repeat it: python -m benchmarks fuzz_commands --seed {seed} --only {number}")
    for kind, times in findings.items():
        say(f"{times:5d} x {kind}")
    say(", ".join(f"exit code {code}: {times}" for code, times in sorted(codes.items())))
    say(f"{codes.total()} command lines, seed {seed}: {len(findings)} findings.")
    sys.exit(bool(findings))


# --- command lines


def commands() -> dict[str, list[Any]]:
    """Options and arguments of every command, as the program lists them; a command in a group has two words."""
    from typer.main import get_command

    from hotshot.cli.app import app

    return {
        f"{name} {inner}".strip(): one.params
        for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
        for inner, one in getattr(command, "commands", {"": command}).items()
    }


def draw_line(rng: random.Random, known: dict[str, list[Any]]) -> tuple[str, list[str], bool]:
    """A command, its words with one or two hostile values, and whether a file is to be damaged instead."""
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
            # Versions of Typer keep the type of an option in different places.
            kind = str(getattr(param, "type", None) or getattr(param, "type_descriptor", "")).lower()
            kind = "number" if re.search(r"\b(int|float)", kind) else "path" if "path" in kind else "text"
            name, value = rng.choice(param.opts), draw_value(rng, kind)
            options += [f"{name}={value}"] if name.startswith("--") and rng.random() < 0.3 else [name, value]
    if rng.random() < 0.2:
        options.append("--json")
    # Words after two dashes are never options.
    positional = ["--", *arguments] if arguments and rng.random() < 0.2 else arguments
    return command, [*command.split(), *options, *positional], damaged


def draw_value(rng: random.Random, kind: str) -> str:
    """A hostile value, mostly of the kind that the option takes; text may be a list of numbers."""
    kinds = ["text", "list"] if kind == "text" else [kind]
    return rng.choice(VALUES[rng.choice(kinds if rng.random() < 0.7 else sorted(VALUES))])


def quoted(text: str) -> str:
    """A word quoted for bash, shortened if it is very long."""
    text = shlex.quote(text) if text.isprintable() else "$" + repr(text)
    return text if len(text) <= 300 else f"{text[:80]}…({len(text)} characters)"


# --- files in the working folder


def make_files(folder: Path) -> None:
    """Write the input files of valid lines, and other files, into the working folder."""
    import numpy as np
    import onnx
    import torch

    from hotshot.backbones import create

    rng = np.random.default_rng(0)
    for name, classes in (("base", ["a", "b", "\x1b[1mc", "d"]), ("novel", ["w", "\x1b[31mx\n", "[bold]y[/]", "z"])):
        np.savez(folder / f"{name}.npz", X=rng.random((32, 6)).astype(np.float32), y=np.repeat(classes, 8))
    X, y = rng.random((8, 3)), np.repeat([0, 1], 4)
    np.savez(folder / "parts.npz", X_base=X, y_base=5 * y, X_novel=X, y_novel=1 + 5 * y)
    np.save(folder / "plain.npy", X)
    np.save(folder / "plain.labels.npy", y)
    make_images(folder / "images", {"train": "ab", "val": "cd", "test": "ef"})
    shutil.copy(folder / "images/train/a/0.png", folder / "picture.png")
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
    for name, text in (
        ("empty", ""), ("text.txt", "no features\n"), ("words.csv", "text,label\na b,x\nc d,y\n"), ("words.json", "{}"),
        ("secret", "secret"),
    ):  # fmt: skip
        (folder / name).write_text(text)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("not/there")


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file in the folder; returns a description of the damage."""
    from hotshot.evaluation import journal

    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and "images/" not in str(p))
    documents = [p for p in files if p.suffix in (".json", ".jsonl")]
    path = rng.choice(rng.choice([files, documents, documents]))
    data = path.read_bytes()
    how = rng.choice(["value", "value", "value", "bytes", "end", "empty", "fifo", "folder", "other", "digits", "deep"])
    if how == "value" and path.suffix == ".json":
        data = json.dumps(with_other_value(rng, json.loads(data))).encode()
    elif how == "value" and path.suffix == ".jsonl" and data:
        lines = data.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        # With a correct checksum.
        lines[at] = journal.encode(with_other_value(rng, journal.decode(lines[at].rstrip())))
        data = b"".join(lines)
    elif how == "digits":
        data = re.sub(rb"\d+", b"9" * rng.choice((25, 400, 5000)), data, count=rng.choice((0, 1)))
    elif how in ("deep", "empty", "end", "other"):
        end = data[: rng.randrange(len(data) + 1)]
        data = {"deep": b"[" * 100_000, "empty": b"", "end": end, "other": rng.choice(files).read_bytes()}[how]
    else:
        data = changed(rng, data, [data])
    path.unlink()
    if how in ("fifo", "folder"):
        {"fifo": os.mkfifo, "folder": os.mkdir}[how](path)
    else:
        path.write_bytes(data)
    return f"{path.relative_to(folder)}: {how}"


def with_other_value(rng: random.Random, document: Any) -> Any:
    """The document with one value replaced, at any depth."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.1:
        return rng.choice(DOCUMENTS)
    key = rng.choice(list(document)) if isinstance(document, dict) else rng.randrange(len(document))
    document[key] = with_other_value(rng, document[key])
    return document


# --- one command in a fork


LIMITS = {
    resource.RLIMIT_AS: MEMORY,
    resource.RLIMIT_CPU: CPU_SECONDS,
    resource.RLIMIT_FSIZE: LARGEST_FILE,
    resource.RLIMIT_NPROC: MOST_PROCESSES,
    resource.RLIMIT_CORE: 0,
}


def run(arguments: list[str], case: Path) -> tuple[int, str, str]:
    """Run a command in `case/work`, within its limits; its exit code, negative for a signal, and what it printed."""

    def command() -> None:
        os.environ |= {"HOME": str(case / "home"), "TMPDIR": str(case / "tmp"), "JOBLIB_TEMP_FOLDER": str(case / "tmp")}
        tempfile.tempdir = None
        # Speed: files need not reach the disk.
        os.fsync = lambda _: None
        sys.argv = ["hotshot", *arguments]
        from hotshot.cli import main as hotshot

        hotshot()

    return in_fork(command, case / "work", case / "log", SECONDS, LIMITS), *printed(case / "log")


def judge(command: str, words: list[str], case: Path, code: int, stdout: str, stderr: str) -> str | None:
    """The description of a finding; None if there is none."""
    text = stdout + stderr
    if "Traceback (most recent call last)" in text:
        places = re.findall(r'File ".*/(hotshot/[^"]*)", line (\d+)', text)
        last = next((line for line in reversed(text.splitlines()) if re.match(r"[\w.]+(:|$)", line)), "")
        return f"traceback: {last.split(':')[0]} at {':'.join(places[-1]) if places else 'outside hotshot'}"
    if code < 0:
        return f"more than {SECONDS} s" if code == -signal.SIGALRM else f"killed by {signal.Signals(-code).name}"
    if code not in EXIT_CODES | MORE_EXIT_CODES.get(command, set()):
        return f"exit code {code}"
    if "hotshot: Not enough memory" in stderr:
        return "too much memory"
    if code == 2 and not stderr.strip():
        return "exit code 2 without an error message"
    if match := CONTROL.search(text):
        return f"control character {match[0]!r}"
    stray = {str(path.relative_to(case)) for place in (case, case / "home", case / "tmp") for path in place.iterdir()}
    # PyTorch makes an empty folder for itself.
    stray = {name for name in stray - {"work", "home", "tmp", "log.out", "log.err"} if "torchinductor" not in name}
    if stray and not any(".." in word or "/" in word[:1] or "=/" in word for word in words):
        names = ", ".join(re.sub("[0-9a-f]{6,}|[0-9]+", "#", name) for name in sorted(stray)[:3])
        return f"writes {names} outside its folder"
    return None


def test(root: Path, seed: int, until: float, number: int) -> dict[str, Any] | None:
    """The result of line `number`; None when the time is over."""
    if time.monotonic() > until:
        return None
    rng, case = random.Random(f"{seed} {number}"), root / f"case-{os.getpid()}"
    command, words, damaged = draw_line(rng, commands())
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(root / "inputs", case / "work", symlinks=True)
    for name in ("home", "tmp"):
        (case / name).mkdir()
    os.mkfifo(case / "work" / "fifo")
    for name, minor in (("null", 3), ("zero", 5), ("full", 7)):
        device = case / "work" / name
        if os.getuid() == 0:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        else:
            device.symlink_to(f"/dev/{name}")
    (case / "work" / "secret").chmod(0)
    line = " ".join(["hotshot", *map(quoted, words)])
    if damaged:
        line += f"  # with {damage(case / 'work', rng)}"
    code, stdout, stderr = run(words, case)
    finding = judge(command, words, case, code, stdout, stderr)
    return {"code": code, "line": line, "finding": finding, "end of stderr": stderr[-3000:]}


def warm_up(root: Path) -> None:
    """Import what the commands import, and make the input files."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    for name in (
        "distributed", "matplotlib.font_manager", "onnxruntime", "pyarrow.parquet", "scipy.io", "hotshot.cli.app",
        "hotshot.inputs", "hotshot.encoders", "hotshot.backbones", "hotshot.paper", "hotshot.report",
    ):  # fmt: skip
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    for name in ("inputs", "making/home", "making/tmp"):
        (root / name).mkdir(parents=True)
    (root / "making" / "work").symlink_to(root / "inputs")
    make_files(root / "inputs")
    for line in MAKING:
        code, _, stderr = run(line.split(), root / "making")
        if code:
            sys.exit(f"The valid command hotshot {line} failed: {stderr}")
