"""Make the embedded bank `omniglot` from the published archives, with `hotshot train` and `hotshot extract`.

    python scripts/make_omniglot_bank.py OMNIGLOT [WORK]

OMNIGLOT is the folder or archive with images_background and images_evaluation. WORK is a folder for intermediate files
(default: omniglot-bank); rerun the command to resume. A Conv4 with 64 features is trained on the 964 background
characters at 28x28, which takes about ten minutes on one core. The background characters are the base classes, with ten
drawings each; the 659 evaluation characters, which were not used in training, are the novel classes, with all twenty
drawings each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from bank_files import first_of_each, write_bank
from hotshot import read_features

TRAINING = ("--size", "28", "--epochs", "20", "--batch-size", "64")
BASE_SAMPLES, NOVEL_SAMPLES = 10, 20
ABOUT = (
    "Omniglot, handwritten characters of 50 alphabets (Lake, Salakhutdinov, Tenenbaum: Human-level concept learning "
    "through probabilistic program induction, 2015), licensed MIT, as features of a Conv4 trained on the 964 "
    "characters of the background alphabets."
)


def main(source: str, work: Path) -> None:
    """Train the network, extract features and write the bank."""
    hotshot = [sys.executable, "-m", "hotshot"]
    cache = ["--cache", str(work / "decoded")]
    backbone, features = work / "backbone", work / "features"
    subprocess.run([*hotshot, "train", source, *TRAINING, "--out", str(backbone), *cache], check=True)
    extract = [*hotshot, "extract", source, "--encoder", str(backbone / "best"), "--out", str(features)]
    subprocess.run([*extract, *cache, "--force"], check=True)
    parts = []
    for split, most in (("base", BASE_SAMPLES), ("novel", NOVEL_SAMPLES)):
        X, y = read_features(features / f"{split}.safetensors")
        parts.append(first_of_each(X, y, np.unique(y), most))
    write_bank("omniglot", *parts, about=ABOUT, ways=20)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) == 3 else "omniglot-bank"))
