"""Features of texts or images, streamed to feature files; an interrupted extraction resumes from `FILE.part`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.encoders.encoder import AT_ONCE, TEXTS, Encoder
from hotshot.encoders.loading import load_encoder
from hotshot.errors import ParameterError
from hotshot.files import Samples, open_features, write_features
from hotshot.files.atomic import held, locked, remove_leftovers
from hotshot.images.decode import THUMBNAIL_SIDE, ImageSplit, centre_square, pillow, squares_of_batches, thumbnails
from hotshot.images.layouts import open_dataset
from hotshot.images.records import Progress, compute_records
from hotshot.version import __version__


@dataclass(frozen=True)
class Extraction:
    """A feature file that `extract` has written, or found complete: then `seconds` is None.

    `corrupt` are the names of images that were left out.
    """

    path: Path
    n_inputs: int
    n_classes: int
    corrupt: tuple[str, ...] = ()
    seconds: float | None = None


def extract(
    inputs: str | Path | Sequence[str],
    encoder: Encoder | str,
    out: str | Path,
    *,
    labels: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    name: str = "texts",
    kind: str = "auto",
    skip_corrupt: bool = False,
    force: bool = False,
    watch: Callable[[str, int, int], None] | None = None,
    after: Callable[[Extraction], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[Extraction]:
    """Write the features of texts, or of each split of a dataset of images, to files in a folder: an Extraction each.

    The same call resumes an interrupted extraction, and leaves complete files as they are.

    Parameters
    ----------
    inputs : path or sequence of str
        A folder or an archive of images, as for ``hotshot.images.layouts.open_dataset``, or texts.
    encoder : Encoder or str
        The encoder, or its name.
    out : str or Path
        Folder for the feature files: base.safetensors, val, novel or all of images, `name` of texts.
    labels, ids : sequence of str, optional
        Labels and ids of texts; by default they have no labels, and numbers as ids.
    name : str
        Name of the texts, which is also that of their feature file, without a suffix.
    kind : str
        Layout of the images.
    skip_corrupt : bool
        Whether to leave out images that cannot be read.
    force : bool
        Whether to overwrite features of other inputs or of another encoder.
    watch : callable, optional
        Called with the name of a file, the number of inputs that are done, and their total.
    after : callable, optional
        Called with the Extraction of each file when it is complete.
    note : callable, optional
        Called with remarks on the dataset.

    Examples
    --------
    >>> import tempfile
    >>> from hotshot.files import read_features
    >>> about = {"extractor": "lengths", "network": {}}
    >>> lengths = Encoder("lengths", "texts", None, about, lambda texts: [[len(text), 1] for text in texts], width=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (done,) = extract(["wren", "kestrel"], lengths, folder, labels=["small", "large"])
    ...     X = read_features(done.path).X
    >>> X
    array([[4., 1.],
           [7., 1.]], dtype=float32)
    """
    encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
    results = []
    with locked(out) as folder:
        if encoder.kind == TEXTS:
            parts = {Path(name).stem: _texts(encoder, inputs, labels, ids, name)}
        else:
            if not isinstance(inputs, (str, Path)):
                raise ParameterError(
                    f"{encoder.name} needs a folder or archive of images, got {type(inputs).__name__}."
                )
            dataset = open_dataset(inputs, kind, skip_corrupt=skip_corrupt)
            for sentence in dataset.notes if note is not None else ():
                note(sentence)  # type: ignore[misc]
            parts = {key: _images(split, dataset.name, key) for key, split in dataset.splits.items()}
        for key, part in parts.items():
            path = folder / f"{key}.safetensors"
            done = None if force else _complete(path, part, encoder)
            if done is None:
                done = _extract(part, encoder, path, None if watch is None else partial(watch, key))
            # Here, since a process may have been killed when the features were complete.
            with held(path):
                part_of(path).unlink(missing_ok=True)
                remove_leftovers(path)
            results.append(done)
            if after is not None:
                after(done)
    return results


@dataclass(frozen=True)
class _Inputs:
    """What becomes one feature file: texts, or the images of a split."""

    source: dict[str, Any]
    X: Sequence[Any]
    y: np.ndarray | None
    ids: Sequence[str] | None
    split: ImageSplit | None = None


def _texts(encoder: Encoder, texts: Any, labels: Sequence[str] | None, ids: Sequence[str] | None, name: str) -> _Inputs:
    if isinstance(texts, (str, Path)) or not len(texts):
        raise ParameterError(f"{encoder.name} needs a list of texts that is not empty.")
    texts, labels = list(texts), None if labels is None else list(labels)
    digest = sha256(json.dumps([texts, labels]).encode()).hexdigest()
    source = {"name": name, "texts": f"sha256:{digest}"}
    return _Inputs(source, texts, None if labels is None else np.array(labels), ids)


def _images(split: ImageSplit, name: str, key: str) -> _Inputs:
    # Names that are not valid text are escaped.
    ids = [image.name.encode(errors="backslashreplace").decode() for image in split.images]
    source = {"name": name, "split": key, "images": split.fingerprint()}
    return _Inputs(source, split.images, np.array(split.names)[split.labels], ids, split)


def part_of(path: Path) -> Path:
    """The file of unfinished features."""
    return path.with_name(f"{path.name}.part")


def _complete(path: Path, inputs: _Inputs, encoder: Encoder) -> Extraction | None:
    """A file that the same extraction has written; that of another one is refused."""
    if not path.exists():
        return None
    file = open_features(path, labelled=False)
    header, saved = json.loads(json.dumps({**encoder.about, "source": inputs.source})), file.about.get("network")
    # Bits of features depend on the processor and its threads, and so do fingerprints, which older files have, too.
    if isinstance(saved, dict) and encoder.same_as(saved.get("probe", ())):
        header["network"] |= {key: saved[key] for key in ("probe", "fingerprint") if key in saved}
    if any(file.about.get(key) != value for key, value in header.items()):
        raise ParameterError(
            f"{path} exists, from other {encoder.kind} or another encoder: pass --force to overwrite it."
        )
    X, y = file.read()
    return Extraction(path, len(X), 0 if y is None else len(set(y.tolist())))


def _extract(inputs: _Inputs, encoder: Encoder, path: Path, watch: Progress | None) -> Extraction:
    """Write the features of inputs, with their ids, texts or thumbnails, from where an interrupted call has stopped."""
    start, split, total = time.perf_counter(), inputs.split, len(inputs.X)
    about = {**encoder.about, "source": inputs.source}
    side = 0 if encoder.size is None else min(encoder.size, THUMBNAIL_SIDE)
    fields: list[Any] = [("features", np.float32, (encoder.width or 0,))]
    fields += [("thumbnail", np.uint8, (side, side, 3))] if side else []

    def compute(waiting: list[slice]) -> Iterator[tuple[dict[str, np.ndarray], dict[int, str]]]:
        raw: Any = (inputs.X[rows] for rows in waiting)
        batches = ((texts, {}) for texts in raw) if split is None else squares_of_batches(raw, encoder.size or 0)
        for batch, unreadable in batches:
            values = {"features": encoder.encode(batch)}
            if side:
                small = [centre_square(pillow().Image.fromarray(pixels), side) for pixels in batch]
                values["thumbnail"] = np.reshape(small, (-1, side, side, 3))
            yield values, unreadable

    with held(path):
        state = {**about, "modified": 0 if split is None else split.modified()}
        records, errors = compute_records(part_of(path), state, fields, total, AT_ONCE[encoder.kind], compute, watch)
        chosen: Any = np.arange(total) if split is None else split.without(errors, "the others stay extracted")
        # Where all could be read, features stay on the disk.
        records = records[chosen] if errors else records
        columns: dict[str, Any] = {"text": inputs.X} if split is None else {}
        if side:
            columns["thumbnail"] = thumbnails(records["thumbnail"], side)
        if inputs.ids is not None:
            columns["id"] = [inputs.ids[i] for i in chosen]
        y = None if inputs.y is None else inputs.y[chosen]
        about |= {"created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
        write_features(path, Samples(records["features"], y, columns, about))
    corrupt = tuple(inputs.ids[i] for i in errors) if inputs.ids is not None else ()
    n_classes = 0 if y is None else len(np.unique(y))
    return Extraction(path, len(chosen), n_classes, corrupt, time.perf_counter() - start)
