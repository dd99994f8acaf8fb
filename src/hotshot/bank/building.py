"""Banks from features that do not fit in memory: one pass over batches, or statistics from the parts of a cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features, one_thread, slices
from hotshot.bank.covariances import Covariances, Dense, diagonal
from hotshot.bank.space import (
    ROWS_AT_ONCE,
    FeatureTransform,
    PreparedBase,
    Space,
    base_transform,
    centre_of,
    final_transform,
    leading_axes,
    pooled_axes,
)
from hotshot.bank.statistics import FORMS, ClassStatistics
from hotshot.bank.store import SAMPLES
from hotshot.cluster import cluster_client, wait_for_a_worker
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files import Samples, open_features
from hotshot.files.tensors import Stream, map_tensors, write_tensors
from hotshot.labels import check_labels

SPOOL = "arrived.raw"
# A part of the features: a feature file, or a function that returns batches (or one batch) of features and labels.
Partition = str | Path | Callable[[], Any]


def spool_samples(batches: Iterable[tuple[Any, Any]], folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write samples to ``folder`` class by class, from one pass over batches: samples (mapped), counts, names."""
    index: dict[Any, int] = {}
    arrived: list[np.ndarray] = []
    dtype, width = None, None
    with (folder / SPOOL).open("wb") as file:
        for X, y in _pairs(batches):
            X = check_features(X, "X_base", width=width)
            names, labels = check_labels(y, len(X), "y_base")
            if index and isinstance(names.tolist()[0], str) != isinstance(next(iter(index)), str):
                raise InputError("y_base mixes strings and numbers between batches: use one type of label.")
            if dtype is None:
                dtype, width = X.dtype, X.shape[1]
            if X.dtype.itemsize > dtype.itemsize:
                raise InputError(f"X_base is {dtype} in the first batch and {X.dtype} in a later one: use one dtype.")
            codes = np.array([index.setdefault(name, len(index)) for name in names.tolist()])
            arrived.append(codes[labels])
            file.write(np.ascontiguousarray(X, dtype=dtype).data)
    if dtype is None or width is None:
        raise InputError("No batch of features was passed: pass at least one.")
    names, place = np.unique(np.array(list(index)), return_inverse=True)
    labels = place[np.concatenate(arrived)]
    order = np.argsort(labels, kind="stable")
    spooled = np.memmap(folder / SPOOL, dtype=dtype, mode="r", shape=(len(labels), width))
    blocks = (spooled[order[rows]] for rows in slices(len(order), ROWS_AT_ONCE))
    write_tensors(folder / SAMPLES, {"samples": Stream((len(labels), width), dtype, blocks)}, {})
    del spooled
    (folder / SPOOL).unlink()
    return map_tensors(folder / SAMPLES).tensors["samples"], np.bincount(labels), names


def _pairs(batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Batches as they arrive; errors in reading them are not reported as errors in writing the bank."""
    try:
        for batch in batches:
            if isinstance(batch, Samples):
                batch = tuple(batch)
            if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                raise InputError(
                    f"Batches must be pairs of features and labels, got {type(batch).__name__}: yield (X, y)."
                )
            yield batch[0], batch[1]
    except OSError as error:
        raise InputError(f"The batches of features cannot be read: {error}.") from error


def gather_statistics(
    partitions: Sequence[Partition],
    *,
    form: str = "dense",
    transform: FeatureTransform | None = None,
    scheduler: str | None = None,
) -> ClassStatistics:
    """Statistics of all parts of the features, merged; computed on the Dask cluster of a scheduler's address, if given.

    Parts are feature files, which all workers must be able to read, or functions without parameters that return
    features and labels or an iterator of such batches. For ``form`` and ``transform`` see ``ClassStatistics``.
    """
    if not len(partitions):
        raise ParameterError("partitions is empty: pass at least one feature file.")
    task = partial(_statistics_of, form, transform)
    if scheduler is None:
        return task(*partitions)
    with cluster_client(scheduler) as client:
        from distributed.scheduler import KilledWorker

        try:
            wait_for_a_worker(client)
            parts = client.map(task, list(partitions), pure=False)
            while len(parts) > 1:
                # Pairs are merged on the workers, so that no process holds all partial results.
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = [client.submit(_merged, *pair, pure=False) for pair in pairs]
            merged: ClassStatistics = parts[0].result()
            return merged
        except KilledWorker:
            raise RunError(
                "Dask lost several workers on one part of the features, most often because memory ran out: "
                "make smaller parts, or give the workers more memory."
            ) from None


@one_thread()
def _merged(first: ClassStatistics, *others: ClassStatistics) -> ClassStatistics:
    return first.merge(*others)


@one_thread()
def _statistics_of(form: str, transform: FeatureTransform | None, *partitions: Partition) -> ClassStatistics:
    statistics = ClassStatistics(form, transform)
    for X, y in _pairs(_batches(partitions)):
        statistics.partial_fit(X, y)
    return statistics


def _batches(partitions: Iterable[Partition]) -> Iterator[Any]:
    for part in partitions:
        batches = part() if callable(part) else open_features(part).batches(ROWS_AT_ONCE)
        yield from [batches] if isinstance(batches, tuple) and len(batches) == 2 else batches


def prepare_statistics(
    gather: Callable[..., ClassStatistics], space: Space, extent: ClassStatistics
) -> tuple[PreparedBase, ClassStatistics]:
    """A bank of statistics in ``space``, from a function that gathers statistics for a form and a transform.

    ``extent`` are statistics of the untransformed features, of any form, for their dtype and scale. The features are
    read three times more: for the centre and the leading axes, for the axes of the pooled covariance, and for the
    statistics in these axes.
    """
    dtype = extent.dtype
    if space.sample_weights != "uniform":
        raise ParameterError("Sample weights by a classifier need the samples: pass sample_weights='uniform'.")
    if space.covariance not in FORMS:
        raise ParameterError(
            f"covariance of a bank without samples must be dense, diagonal or pooled, got {space.covariance!r}."
        )
    normalise = space.normalize is not None
    plain = base_transform(space, max(extent.largest, -extent.smallest), dtype)
    raw = gather(form="pooled", transform=plain)
    middle = centre_of(raw.mean, len(raw.names)) if normalise else np.zeros_like(raw.mean)
    leading = np.eye(raw.means.shape[1])
    if space.n_components is not None:
        leading = leading_axes(raw.moment(middle), space.n_components, extent.counts)
    leading = leading.astype(dtype)
    reduced = replace(plain, centre=middle.astype(dtype) if normalise else None, axes=leading, unit=normalise)
    spectrum, rotation = pooled_axes(gather(form="pooled", transform=reduced).pooled_covariance, dtype)
    axes = leading @ rotation
    of_base = replace(reduced, axes=axes)
    statistics = gather(form=space.covariance, transform=of_base)
    means = statistics.means.astype(dtype)
    covariances: Covariances
    if space.covariance == "dense":
        covariances = Dense(statistics.covariances.astype(dtype))
    elif space.covariance == "diagonal":
        covariances = diagonal(statistics.variances.astype(dtype))
    else:
        covariances = diagonal(np.tile(spectrum, (len(means), 1)))
    prepared = PreparedBase(
        names=statistics.names,
        transform=final_transform(space, of_base),
        buckets=(),
        means=means,
        weighted_means=means,
        mean_units=means if normalise else statistics.unit_means.astype(dtype),
        covariances=covariances,
        spectrum=spectrum,
        ones=axes.sum(axis=0),
        counts=statistics.counts,
    )
    return prepared, raw
