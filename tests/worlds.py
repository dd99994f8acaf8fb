"""Made-up inputs of three kinds, in files and in memory: texts, images and features of the same classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.files import Samples, write_features
from sentences import ENCODER, sentences, write_table

KINDS = ["texts", "images", "features"]
OLD, NEW, LATER = [f"old{i}" for i in range(8)], ["kite", "wren"], "gull"
SETTINGS = {"mean_rule": "posterior", "power": 1.0, "epsilon": 0.02, "n_generated": 200, "support_weight": 20.0}
EYES = """
import numpy as np

def eyes(pixels):
    return 1 + pixels.reshape(len(pixels), 4, 4, 4, 4, 3).mean(axis=(2, 4, 5)).reshape(len(pixels), -1)

eyes.size = 16
"""


@dataclass
class World:
    """Inputs of one kind: files of old and new classes, and functions that make more."""

    kind: str
    folder: Path
    encoder: str | None
    # One item that cannot be read, and why.
    bad: Any
    reason: str

    def items(self, name: str, n: int, seed: int = 0) -> Any:
        """`n` inputs of a class, as a person holds them in memory."""
        if self.kind == "texts":
            return sentences(name, n, seed)
        class_rng, rng = np.random.default_rng([*name.encode()]), np.random.default_rng([seed, *name.encode()])
        if self.kind == "features":
            return class_rng.normal(size=16) + 0.2 * rng.normal(size=(n, 16))
        image = pytest.importorskip("PIL.Image")
        pattern, paths = class_rng.integers(0, 200, (4, 4)), []
        for i in range(n):
            path = self.folder / f"all-{seed}" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.kron(pattern + rng.integers(0, 40, (4, 4)), np.ones((4, 4))).astype(np.uint8)
            image.fromarray(np.repeat(pixels[..., None], 3, axis=2)).save(path)
            paths.append(path)
        return paths

    def together(self, parts: list[Any]) -> Any:
        """Inputs of several classes."""
        return np.concatenate(parts) if self.kind == "features" else [item for part in parts for item in part]

    def file(self, name: str, items: Any, labels: list[str] | None = None) -> Path:
        """A file of inputs, with their labels."""
        if self.kind == "features":
            write_features(self.folder / f"{name}.npz", Samples(items, None if labels is None else np.array(labels)))
            return self.folder / f"{name}.npz"
        column = "text" if self.kind == "texts" else "path"
        rows = [(str(item),) for item in items]
        rows = rows if labels is None else [(*row, label) for row, label in zip(rows, labels, strict=True)]
        return write_table(self.folder / f"{name}.csv", rows, (column, "label")[: len(rows[0])])

    def classes(self, names: list[str], n: int, seed: int = 0) -> tuple[Any, list[str]]:
        """`n` inputs of each of these classes, and their labels."""
        items = self.together([self.items(name, n, seed) for name in names])
        return items, [name for name in names for _ in range(n)]

    def model(self) -> InputClassifier:
        """A model of the old classes that learns the new ones."""
        return InputClassifier(self.encoder, base=self.folder / f"old{self.suffix}", **SETTINGS)

    @property
    def suffix(self) -> str:
        return ".npz" if self.kind == "features" else ".csv"


def make_world(kind: str, folder: Path) -> World:
    """Files of old classes with eight inputs each, and of new ones with three."""
    if kind == "texts":
        (folder / "words.py").write_text(ENCODER, encoding="utf-8")
        made = World("texts", folder, f"{folder}/words.py:embed", " ", "it has no text")
    elif kind == "images":
        pytest.importorskip("torch")
        (folder / "eyes.py").write_text(EYES, encoding="utf-8")
        made = World("images", folder, f"{folder}/eyes.py:eyes", folder / "gone.png", "No such file")
    else:
        made = World("features", folder, None, np.full((1, 16), np.nan), "not all finite")
    made.file("old", *made.classes(OLD, 8))
    made.file("new", *made.classes(NEW, 3))
    return made
