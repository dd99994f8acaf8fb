"""Make the embedded bank `banking77` from sentence embeddings of its questions.

    python scripts/make_banking77_bank.py FEATURES.npz

FEATURES.npz holds `X` (questions, 384), all-MiniLM-L6-v2 embeddings, and `y`, their intents. The intents are
shuffled with seed 0; the first 47 become base classes of at most 60 questions, the other 30 novel classes of at
most 40, in the order of the file, stored in half precision.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from hotshot.tensors import write_tensors

OUT = Path(__file__).resolve().parents[1] / "src" / "hotshot" / "banks" / "banking77.safetensors"
N_BASE, BASE_SAMPLES, NOVEL_SAMPLES = 47, 60, 40
ABOUT = (
    "BANKING77, customer questions to a bank in 77 intents (Casanueva, Temcinas, Gerz, Henderson, Vulic: Efficient "
    "Intent Detection with Dual Sentence Encoders, 2020), licensed CC BY 4.0, as all-MiniLM-L6-v2 sentence embeddings."
)


def main(source: str) -> None:
    """Write the bank and print what is in it."""
    with np.load(source, allow_pickle=False) as file:
        X, y = file["X"], file["y"]
    intents = np.random.default_rng(0).permutation(np.unique(y))
    tensors: dict[str, np.ndarray] = {}
    metadata = {"about": ABOUT}
    parts = (("base", intents[:N_BASE], BASE_SAMPLES), ("novel", intents[N_BASE:], NOVEL_SAMPLES))
    for part, names, most in parts:
        names = np.sort(names)
        rows = [np.flatnonzero(y == name)[:most] for name in names]
        tensors[part] = X[np.concatenate(rows)].astype(np.float16)
        tensors[f"{part}_counts"] = np.array([len(r) for r in rows])
        metadata[f"{part}_names"] = json.dumps(names.tolist())
    write_tensors(OUT, tensors, metadata)
    print(
        f"{OUT.name}: base {tensors['base'].shape}, novel {tensors['novel'].shape}, {OUT.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
