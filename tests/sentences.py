"""Made-up sentences of classes with words of their own, and an encoder of words that needs nothing."""

from __future__ import annotations

import csv

import numpy as np

ENCODER = """
import hashlib
import numpy as np

def embed(texts):
    found = np.full((len(texts), 64), 1e-3, dtype=np.float32)
    for row, text in zip(found, texts):
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
            row += np.random.default_rng(seed).standard_normal(64).astype(np.float32)
    return found

embed.kind = "texts"
"""
COMMON = ["please", "could", "you", "tell", "me", "now"]


def sentences(name: str, n: int, seed: int = 0) -> list[str]:
    """Sentences of a class: three of its own five words, two that all classes share."""
    rng = np.random.default_rng([seed, *name.encode()])
    own = [f"{name}{i}" for i in range(5)]
    return [
        " ".join([*rng.choice(own, 3, replace=False), *rng.choice(COMMON, 2, replace=False)]).capitalize()
        for _ in range(n)
    ]


def write_table(path, rows, header=("text", "label")):
    """A CSV file of these rows."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def labelled(names, n, seed=0):
    """Rows of text and label."""
    return [(text, name) for name in names for text in sentences(name, n, seed)]


def read_table(path):
    """Rows of a CSV file as dictionaries."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    """Every file in a folder with its bytes, and every folder."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


OLD = [f"old{chr(97 + i)}" for i in range(20)]
NEW = ["kite", "wren", "lark"]


def write_problem(folder):
    """Tables of old classes, of new ones with three sentences each, and of queries of both and of none."""
    (folder / "words.py").write_text(ENCODER, encoding="utf-8")
    write_table(folder / "old.csv", labelled(OLD, 12))
    write_table(folder / "new.csv", labelled(NEW, 3))
    queries = [*labelled(NEW, 8, seed=1), *labelled(OLD, 2, seed=1), *labelled(["strange"], 8, seed=1)]
    rows = [(i, text, name) for i, (text, name) in enumerate(queries)]
    write_table(folder / "inbox.csv", rows, header=("ticket", "text", "truth"))
    return folder
