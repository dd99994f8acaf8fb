"""Samples of a model: named, joined, told apart, and read from its folder."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError, LeftOutWarning
from hotshot.files import Samples, open_features
from hotshot.files.objects import need
from hotshot.files.samples import ID, THUMBNAIL
from hotshot.formatting import count, listing, quoted

# Answer for an input that fits no class.
NONE = "none of these"
# Thumbnails of each class that are kept for explanations; of other samples the id is shown.
MOST_THUMBNAILS = 50


def names_of(samples: Samples) -> list[str]:
    """Names for explanations: texts in quotes, or else ids."""
    if samples.texts:
        return [f'"{text}"' for text in samples.texts]
    return [f"id {one}" if one.isdecimal() else one for one in samples.ids]


def readable(batch: Samples) -> np.ndarray:
    """Row numbers of the rows that can be read."""
    return np.delete(np.arange(len(batch)), list(batch.errors))


def unreadable(errors: Mapping[int, str], n_inputs: int, name: str) -> str:
    """How many inputs cannot be read, and of the first ones why; `errors` are by rows, from 0."""
    first = listing(f"row {row + 1} ({error})" for row, error in errors.items())
    return f"{len(errors):,} of {count(n_inputs, 'input')} of {name} cannot be read: {first}"


def joined(parts: Sequence[Samples]) -> Samples:
    """Samples one after another; columns that not all have are left out."""
    if len(parts) == 1:
        return parts[0]
    in_arrays = isinstance(parts[0].X, np.ndarray)
    X = np.concatenate([part.X for part in parts]) if in_arrays else [x for part in parts for x in part.X]
    y = None if parts[0].y is None else np.concatenate([part.y for part in parts])
    names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: list(chain.from_iterable(part.columns[name] for part in parts)) for name in names}
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    errors = {first + row: why for first, part in zip(starts, parts, strict=False) for row, why in part.errors.items()}
    return Samples(X, y, columns, parts[0].about, errors)


def distinct(new: Samples, stored: Sequence[Samples], strict: bool) -> Samples:
    """Without samples that are stored already, that repeat another, or that have several labels.

    Samples labelled "none of these" are left out too: that is an answer and not a class. If `strict`, all are errors.
    """
    labels: dict[Any, set[str]] = defaultdict(set)
    for samples in (*stored, new):
        for content, label in zip(_contents(samples), samples.y.tolist(), strict=True):
            labels[content].add(label)
    seen = {*chain.from_iterable(map(_contents, stored))}
    wrong = []
    for name, content, label in zip(names_of(new), _contents(new), new.y.tolist(), strict=True):
        if label == NONE:
            wrong.append(f"{name} is labelled '{NONE}', which is no class")
        elif len(labels[content]) > 1:
            wrong.append(f"{name} has the labels {listing(map(quoted, sorted(labels[content])))}")
        else:
            wrong.append(f"{name} is a sample of {quoted(label)} already" if content in seen else "")
        seen.add(content)
    usable = np.array([not reason for reason in wrong])
    if usable.all():
        return new
    sentence = f"{count(int((~usable).sum()), 'sample')} cannot be used: {listing(filter(None, wrong))}"
    if strict or not usable.any():
        raise InputError(f"{sentence}; correct or remove them.")
    warnings.warn(f"{sentence}. Left out.", LeftOutWarning, stacklevel=2)
    return new[usable]


def _contents(samples: Samples) -> list[Any]:
    """What tells samples apart: texts, thumbnails or the features themselves."""
    if samples.texts:
        return [text.strip() for text in samples.texts]
    features = [row.tobytes() for row in samples.X]
    small = samples.thumbnails or [b""] * len(features)
    return [image or vector for image, vector in zip(small, features, strict=True)]


def with_new_ids(samples: Samples, taken: Sequence[str]) -> Samples:
    """The same samples; ids that are taken get a number."""
    ids, used = [], {*taken}
    for name in samples.ids:
        numbered = (f"{name} ({i})" for i in count_from(2))
        ids.append(next(one for one in chain([name], numbered) if one not in used))
        used.add(ids[-1])
    return replace(samples, columns={**samples.columns, ID: ids})


def with_few_thumbnails(samples: Samples, counts: Counter[str]) -> Samples:
    """The same samples, with thumbnails of the first ones of each class; `counts` are those of the samples so far."""
    if samples.thumbnails is None:
        return samples
    small = []
    for label, image in zip(samples.y, samples.thumbnails, strict=True):
        counts[label] += 1
        small.append(image if counts[label] <= MOST_THUMBNAILS else b"")
    return replace(samples, columns={**samples.columns, THUMBNAIL: small})


def read_samples(file: Path, labels: np.ndarray, width: int) -> Samples:
    """Samples of a saved model, in memory: its folder may be deleted."""
    source = open_features(file, labelled=False)
    X = np.array(source.read()[0])
    need(X.shape == (len(labels), width) and np.isfinite(X).all(), f"{file.name} does not match the model")
    columns = {name: list(values) for name, values in source.columns.items()}
    return Samples(X, labels, {ID: list(map(str, range(len(X)))), **columns}, source.about)
