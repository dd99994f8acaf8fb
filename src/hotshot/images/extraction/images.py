"""Images in, a file of features out, in batches that survive an interruption."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotshot.errors import InputError
from hotshot.files import write_features
from hotshot.images.datasets import DecodedSplit
from hotshot.images.extraction.extractor import Extractor

IMAGES_AT_ONCE = 128


def extract_split(
    extractor: Extractor,
    split: DecodedSplit,
    out: str | Path,
    *,
    about: dict[str, Any],
    device: str = "cpu",
    watch: Callable[[int, int], None] | None = None,
) -> float:
    """Write the features of a split, and return the share of the time that was spent in the network.

    Features are kept in `OUT.part` as they come; after an interruption the same call goes on from there.
    """
    out = Path(out)
    part = out.with_name(f"{out.name}.part")
    want = {"extractor": extractor.name, "images": split.fingerprint, "count": len(split), **extractor.about}
    done, width = _begun(part, want)
    inside, start = 0.0, time.perf_counter()
    with part.open("ab") as file:
        while done < len(split):
            rows = slice(done, min(done + IMAGES_AT_ONCE, len(split)))
            pixels = torch.from_numpy(np.array(split.images[rows])).permute(0, 3, 1, 2).to(device)
            with torch.inference_mode():
                inputs = extractor.prepare(pixels)
                before = time.perf_counter()
                features = extractor.network(inputs).float().cpu().numpy()
                inside += time.perf_counter() - before
            if width is None:
                width = features.shape[1]
                _begin(part, want, width)
            if features.shape[1] != width:
                raise InputError(
                    f"{extractor.name} gave {features.shape[1]} features near image {done} and {width} before: use a "
                    "network whose features have one width."
                )
            if not np.isfinite(features).all():
                raise InputError(
                    f"{extractor.name} gave NaN or infinity near image {done}: check its weights."
                )
            file.write(np.ascontiguousarray(features, dtype=np.float32).data)
            done = rows.stop
            if watch is not None:
                watch(done, len(split))
    seconds = time.perf_counter() - start
    X = np.memmap(part, dtype=np.float32, mode="r").reshape(len(split), -1)
    write_features(out, (X, np.array(split.names)[split.labels]), about=about)
    del X
    part.unlink()
    _header(part).unlink()
    return inside / seconds if seconds else 1.0


def _header(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _begin(part: Path, want: dict[str, Any], width: int) -> None:
    _header(part).write_text(json.dumps({**want, "width": width}))


def _begun(part: Path, want: dict[str, Any]) -> tuple[int, int | None]:
    """How many images an interrupted extraction of the same kind has done, and the width of its features."""
    try:
        found = json.loads(_header(part).read_text())
        width = int(found.pop("width"))
        same = found == json.loads(json.dumps(want))
        n_bytes = part.stat().st_size
    except (OSError, ValueError, KeyError, AttributeError):
        same = False
    if not same:
        part.unlink(missing_ok=True)
        _header(part).unlink(missing_ok=True)
        return 0, None
    # A row that was cut is computed again.
    done = n_bytes // (4 * width)
    os.truncate(part, done * 4 * width)
    return done, width
