"""Banks from features that do not fit in memory: one pass over batches, or a merge over the parts of a cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features, one_thread, slices
from hotshot.bank.covariances import Dense, Diagonal, repeat_pooled
from hotshot.bank.space import (
    ROWS_AT_ONCE,
    FeatureTransform,
    PreparedBase,
    Space,
    base_transform,
    centre_of,
    leading_axes,
    pooled_axes,
)
from hotshot.bank.store import SAMPLES
from hotshot.bank.streaming import FORMS, ClassStatistics, label_kind, merge_all
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
            if index and label_kind(names.tolist()[0]) is not label_kind(next(iter(index))):
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
    labels = np.concatenate(arrived)
    names = np.array(list(index))
    by_name = np.argsort(names, kind="stable")
    place = np.argsort(by_name)[labels]
    order = np.argsort(place, kind="stable")
    spooled = np.memmap(folder / SPOOL, dtype=dtype, mode="r", shape=(len(labels), width))
    blocks = (spooled[order[rows]] for rows in slices(len(order), ROWS_AT_ONCE))
    write_tensors(folder / SAMPLES, {"samples": Stream((len(labels), width), dtype, blocks)}, {})
    del spooled
    (folder / SPOOL).unlink()
    return map_tensors(folder / SAMPLES).tensors["samples"], np.bincount(place), names[by_name]


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
    """Statistics of all parts of the features, merged; computed on a Dask cluster if ``scheduler`` is given.

    Parts are feature files, which all workers must be able to read, or functions without parameters that return
    features and labels or an iterator of such batches. For ``form`` and ``transform`` see ``ClassStatistics``;
    ``scheduler`` is an address such as "tcp://host:8786".
    """
    if not len(partitions):
        raise ParameterError("partitions is empty: pass at least one feature file.")
    task = partial(_statistics_of, form=form, transform=transform)
    if scheduler is None:
        return merge_all(task(part) for part in partitions)
    with cluster_client(scheduler) as client:
        from distributed.scheduler import KilledWorker

        try:
            wait_for_a_worker(client)
            parts = client.map(task, list(partitions), pure=False)
            while len(parts) > 1:
                # Pairs are merged on the workers, so that no process holds all partial results.
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = [client.submit(_merge_pair, *pair, pure=False) for pair in pairs]
            merged: ClassStatistics = parts[0].result()
            return merged
        except KilledWorker:
            raise RunError(
                "Dask lost several workers on one part of the features, most often because memory ran out: "
                "make smaller parts, or give the workers more memory."
            ) from None


@one_thread()
def _merge_pair(*pair: ClassStatistics) -> ClassStatistics:
    return merge_all(pair)


@one_thread()
def _statistics_of(partition: Partition, form: str, transform: FeatureTransform | None) -> ClassStatistics:
    found = ClassStatistics(form, transform)
    for X, y in _pairs(_batches(partition)):
        found.partial_fit(X, y)
    return found


def _batches(partition: Partition) -> Iterator[Any]:
    if not callable(partition):
        yield from open_features(partition).batches(ROWS_AT_ONCE)
        return
    given = partition()
    if isinstance(given, tuple) and len(given) == 2:
        yield given
    else:
        yield from given


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
    centre = middle.astype(dtype) if normalise else None
    leading = np.eye(raw.means.shape[1])
    if space.n_components is not None:
        leading = leading_axes(raw.moment(middle), space.n_components, extent.counts)
    leading = leading.astype(dtype)
    reduced = replace(plain, centre=centre, axes=leading, unit=normalise)
    spectrum, rotation = pooled_axes(gather(form="pooled", transform=reduced).pooled_covariance, dtype)
    axes = leading @ rotation
    final = replace(reduced, axes=axes)
    found = gather(form=space.covariance, transform=final)
    means = found.means.astype(dtype)
    if space.covariance == "dense":
        covariances: Dense | Diagonal = Dense(found.covariances.astype(dtype))
    elif space.covariance == "diagonal":
        covariances = Diagonal(found.variances.astype(dtype))
    else:
        covariances = repeat_pooled(spectrum, len(means))
    prepared = PreparedBase(
        names=found.names,
        transform=replace(final, power=space.power, offset=space.power_offset * final.scale),
        buckets=(),
        means=means,
        weighted_means=means,
        mean_units=means if normalise else found.unit_means.astype(dtype),
        covariances=covariances,
        spectrum=spectrum,
        ones=axes.sum(axis=0),
        counts=found.counts,
    )
    return prepared, raw
