"""Make the embedded bank `banking77` from sentence embeddings of its questions.

    python scripts/make_banking77_bank.py FEATURES.npz

FEATURES.npz contains `X` (questions, 384), all-MiniLM-L6-v2 embeddings, and `y`, their intents. The intents are
shuffled with seed 0: the first 47 become base classes with their first 60 questions, the other 30 novel classes with
their first 40 questions.
"""

from __future__ import annotations

import sys

import numpy as np

from bank_files import first_of_each, write_bank

N_BASE, BASE_SAMPLES, NOVEL_SAMPLES = 47, 60, 40
ABOUT = (
    "BANKING77, customer questions to a bank in 77 intents (Casanueva, Temcinas, Gerz, Henderson, Vulic: Efficient "
    "Intent Detection with Dual Sentence Encoders, 2020), licensed CC BY 4.0, as all-MiniLM-L6-v2 sentence embeddings."
)


def main(source: str) -> None:
    """Choose the intents and write the bank."""
    with np.load(source, allow_pickle=False) as file:
        X, y = file["X"], file["y"]
    intents = np.random.default_rng(0).permutation(np.unique(y))
    base = first_of_each(X, y, intents[:N_BASE], BASE_SAMPLES)
    novel = first_of_each(X, y, intents[N_BASE:], NOVEL_SAMPLES)
    write_bank("banking77", base, novel, about=ABOUT, ways=5)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
