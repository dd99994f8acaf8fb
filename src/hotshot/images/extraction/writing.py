"""From images or texts to a feature file; an interrupted extraction of images can resume."""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files import Samples, write_features
from hotshot.files.atomic import hold
from hotshot.files.samples import ID, TEXT, THUMBNAIL
from hotshot.images.datasets import DecodedSplit
from hotshot.images.datasets.pixels import pillow
from hotshot.images.extraction.extractor import Extractor

IMAGES_AT_ONCE, TEXTS_AT_ONCE = 128, 256
LONGEST_LINE = 2**24
THUMBNAIL_SIDE = 64


def extract_split(
    extractor: Extractor,
    split: DecodedSplit,
    out: str | Path,
    *,
    about: dict[str, Any],
    device: str = "cpu",
    watch: Callable[[int, int], None] | None = None,
) -> float:
    """Write the features of a split, and return the share of the time spent in the network.

    The path and a thumbnail of each image are stored beside the features. Unfinished features are in `OUT.part`; the
    same call resumes after an interruption.
    """
    out, part = Path(out), part_of(out)
    header = {"extractor": extractor.name, "images": split.fingerprint, "count": len(split), **extractor.about}
    inside, start = 0.0, time.perf_counter()
    pillow()
    try:
        file = part.open("ab+")
    except OSError as error:
        raise InputError(f"{part} cannot be written: {error.strerror or error}.") from None
    with file:
        hold(file, str(out))
        done, width, first = _resumable(file, header)
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
                line = json.dumps({**header, "width": width}).encode() + b"\n"
                _append(file, line)
                first = len(line)
            if features.shape[1] != width:
                raise InputError(
                    f"{extractor.name} returned {features.shape[1]} features near image {done}, {width} before: use a "
                    "network whose features have one width."
                )
            if not np.isfinite(features).all():
                raise InputError(f"{extractor.name} returned NaN or infinity near image {done}: check its weights.")
            _append(file, np.ascontiguousarray(features, dtype=np.float32).data)
            done = rows.stop
            if watch is not None:
                watch(done, len(split))
        seconds = time.perf_counter() - start
        X = np.memmap(part, dtype=np.float32, mode="r", offset=first, shape=(len(split), int(width or 0)))
        columns = {**({ID: split.ids} if split.ids else {}), THUMBNAIL: _thumbnails(split)}
        write_features(out, Samples(X, np.array(split.names)[split.labels], columns), about=about)
        del X
        # Under the lock. Windows removes no open file: there, whoever finds the features complete does.
        with suppress(PermissionError):
            part.unlink()
    return inside / seconds if seconds else 1.0


def part_of(out: Path) -> Path:
    """The file of an unfinished extraction: a line of JSON with the width of a row, and the rows."""
    return out.with_name(f"{out.name}.part")


def _thumbnails(split: DecodedSplit) -> Sequence[bytes]:
    """Thumbnails of images, about a kilobyte each."""
    library, thumbnails = pillow(), []
    kind = "WEBP" if "WEBP" in library.Image.SAVE else "JPEG"
    for pixels in split.images:
        image = library.Image.fromarray(np.ascontiguousarray(pixels))
        image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
        with BytesIO() as file:
            image.save(file, kind, quality=50, method=0)
            thumbnails.append(file.getvalue())
    return thumbnails


def _resumable(file: BinaryIO, header: dict[str, Any]) -> tuple[int, int | None, int]:
    """The number of images already done by the same extraction, the width of its features, and where these begin."""
    file.seek(0)
    line = file.readline(LONGEST_LINE)
    try:
        found = json.loads(line)
        width, first = int(found.pop("width")), len(line)
        if found == json.loads(json.dumps(header)) and line.endswith(b"\n") and width > 0:
            done = (file.seek(0, os.SEEK_END) - first) // (4 * width)
            if done < header["count"]:
                # A batch that was cut is computed again as a whole: the last bits of a row depend on its batch.
                done -= done % IMAGES_AT_ONCE
            file.truncate(first + done * 4 * width)
            return done, width, first
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        pass
    file.truncate(0)
    return 0, None, 0


def _append(file: BinaryIO, content: Any) -> None:
    """Append to a file and force it to the disk, to survive a power cut."""
    try:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise InputError(
            f"{file.name} cannot be written: {error.strerror or error}: free disk space and rerun the command."
        ) from None


def extract_texts(
    embed: Callable[[list[str]], np.ndarray],
    texts: list[str],
    labels: list[str] | None,
    out: str | Path,
    *,
    about: dict[str, Any],
    watch: Callable[[int, int], None] | None = None,
    ids: Sequence[str] | None = None,
) -> None:
    """Write the features of texts with the texts, their labels, if any, and their ids, by default row numbers."""
    found = []
    for rows in slices(len(texts), TEXTS_AT_ONCE):
        found.append(embed(texts[rows]))
        if watch is not None:
            watch(rows.stop, len(texts))
    columns = {**({} if ids is None else {ID: ids}), TEXT: texts}
    y = None if labels is None else np.array(labels)
    write_features(out, Samples(np.concatenate(found), y, columns), about=about)
