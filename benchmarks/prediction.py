"""Speed of `hotshot predict`: on rows of 384 features in Parquet, and on texts compared to their encoder alone.

Rows are measured in wall time and peak memory of all processes, texts in CPU time on one thread.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.shared import say, watched
from hotshot import InputClassifier
from hotshot.bank.embedded import load_bank

WORDS = ["card", "account", "payment", "transfer", "money", "cash", "fee", "rate", "app", "passport", "order", "refund"]
ENCODER_ALONE = """
import csv; from hotshot.encoders import load_encoder; encoder = load_encoder('minilm')
texts = [row['text'] for row in csv.DictReader(open({!r}))]
for i in range(0, len(texts), 256): encoder.encode(texts[i : i + 256])"""


def main(
    rows: Annotated[int, typer.Option(help="Rows of features; 0 for none.")] = 1_000_000,
    texts: Annotated[int, typer.Option(help="Texts; 0 for none.")] = 10_000,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        if rows:
            _features(Path(name), rows)
        if texts:
            _texts(Path(name), texts)


def _features(folder: Path, n_rows: int) -> None:
    bank = load_bank("banking77")
    names = np.unique(bank.y_novel)
    support = np.concatenate([np.flatnonzero(bank.y_novel == name)[:3] for name in names])
    model = InputClassifier(base=bank.base).fit(bank.X_novel[support], bank.y_novel[support])
    model.save(folder / "intents.model")
    _write_parquet(folder / "queries.parquet", bank.X_novel, n_rows)
    for out in ("answers.csv", "answers.parquet"):
        command = [sys.executable, "-m", "hotshot", "predict", "intents.model", "queries.parquet", "-o", out]
        _, seconds, peak = watched([*command, "--reject", "0.05"], folder)
        say(
            f"{n_rows:,} rows of {bank.X_novel.shape[1]} features, {len(model.classes)} classes, to {out}: "
            f"{seconds:.1f} s, {n_rows / seconds:,.0f} rows per second, peak {peak / 1e6:,.0f} MB in all processes"
        )


def _write_parquet(path: Path, X: np.ndarray, n_rows: int) -> None:
    """Write noisy copies of features, with columns for the file and the time of each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, width = np.random.default_rng(0), X.shape[1]
    schema = pa.schema({"file": pa.string(), "start": pa.float64(), "embedding": pa.list_(pa.float32(), width)})
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_rows, 50_000):
            rows = np.arange(first, min(first + 50_000, n_rows))
            some = X[rng.integers(len(X), size=len(rows))] + 0.01 * rng.standard_normal((len(rows), width))
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(some.astype(np.float32).reshape(-1)), width)
            columns = [[f"night{row // 1000}.wav" for row in rows], (3.0 * (rows % 1000)).tolist(), vectors]
            writer.write_table(pa.table(columns, schema=schema))


def _texts(folder: Path, n_texts: int) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(n_texts)]
    for name, some in (("inbox.csv", texts), ("few.csv", texts[:256])):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text"], *([text] for text in some)])
    InputClassifier("minilm").fit([f"{word} {word}" for word in WORDS], WORDS).save(folder / "words.model")
    times = {}
    # The time of the same program on a few texts is subtracted, to leave out its start.
    for name in ("few.csv", "inbox.csv"):
        times["encoder", name] = _cpu_seconds(folder, "-c", ENCODER_ALONE.format(name))
        command = ("-m", "hotshot", "predict", "words.model", name, "-o", f"{name}.answers.csv")
        times["predict", name] = _cpu_seconds(folder, *command)
    encoder, predict = (times[what, "inbox.csv"] - times[what, "few.csv"] for what in ("encoder", "predict"))
    say(
        f"{n_texts:,} texts beyond the first 256: encoder alone {encoder:.1f} s of CPU time, hotshot predict "
        f"{predict:.1f} s, ratio {predict / encoder:.3f}"
    )


def _cpu_seconds(folder: Path, *arguments: str) -> float:
    """CPU time of a Python program on one thread; other programs affect it less than wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
