"""Banks from features that do not fit in memory: one pass over batches, or statistics from the parts of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features, check_labels, joined_labels, one_thread, slices
from hotshot.bank.covariances import Covariances, Dense, diagonal
from hotshot.bank.space import (
    ROWS_AT_ONCE,
    FeatureTransform,
    PreparedBase,
    Space,
    base_transform,
    centre_of,
    choose_power,
    leading_axes,
    novel_transform,
    principal_axes,
)
from hotshot.bank.store import SAMPLES
from hotshot.cluster import cluster_client, wait_for_a_worker
from hotshot.errors import InputError, ParameterError
from hotshot.files import open_features
from hotshot.files.tensors import Stream, map_tensors, write_tensors

# A part of the features: a feature file, or a function that returns batches (or one batch) of features and labels.
Partition = str | Path | Callable[[], Any]
# Samples as they arrive, until they are sorted by class.
SPOOL = "arrived.raw"


def spool_samples(batches: Iterable[Any], folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write samples to ``folder`` class by class, from one pass over batches: names, counts, samples (mapped)."""
    index: dict[Any, int] = {}
    arrived: list[np.ndarray] = []
    dtype, width, first = None, None, None
    with (folder / SPOOL).open("wb") as file:
        for X, y in checked_batches(batches):
            X = check_features(X, "X_base", width=width)
            names, labels = check_labels(y, len(X), "y_base")
            if dtype is None or first is None:
                dtype, width, first = X.dtype, X.shape[1], names
            joined_labels(first, names)
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
    return names, np.bincount(labels), map_tensors(folder / SAMPLES).tensors["samples"]


def checked_batches(batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Features and labels batch by batch; errors in reading them are not reported as errors in writing the bank."""
    try:
        for batch in batches:
            try:
                X, y = batch
            except (TypeError, ValueError):
                raise InputError(
                    f"Batches must be pairs of features and labels, got {type(batch).__name__}: yield (X, y)."
                ) from None
            yield X, y
            del batch, X, y
    except OSError as error:
        raise InputError(f"The batches of features cannot be read: {error}.") from error


class ClassStatistics:
    r"""Counts, means and covariances of classes, gathered batch by batch in float64.

    Features are read once and not kept. Partial results, of parts of a stream or of workers of a cluster, merge
    exactly: with n and m samples of means :math:`\mu` and :math:`\nu` the sums of squared deviations add up to

    .. math::
        S = S_n + S_m + \frac{n m}{n + m} (\mu - \nu)(\mu - \nu)^\top .

    With ``form="dense"`` the covariance (V, V) of each class is kept, with "diagonal" its diagonal only. The sorted
    ``names``, ``counts`` (B,) and ``means`` (B, V), and the ``smallest`` and ``largest`` entry and the ``dtype`` of the
    features, exist from the first batch on.
    """

    names: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    smallest: float
    largest: float
    dtype: np.dtype
    # Sums of squared deviations, of each class and of all classes together.
    _scatters: np.ndarray
    _within: np.ndarray

    def __init__(self, form: str = "dense") -> None:
        if form not in ("dense", "diagonal"):
            raise ParameterError(f"form must be dense or diagonal, got {form!r}.")
        self.form = form

    @property
    def is_empty(self) -> bool:
        """Whether there are no samples yet."""
        return "means" not in vars(self)

    def partial_fit(self, X: Any, y: Any) -> ClassStatistics:
        """Add a batch of features (samples, V) and labels (samples,); returns itself."""
        X = check_features(X, width=None if self.is_empty else self.means.shape[1])
        batch = ClassStatistics(self.form)
        batch.smallest, batch.largest, batch.dtype = float(X.min()), float(X.max()), X.dtype
        batch.names, labels = check_labels(y, len(X))
        order = np.argsort(labels, kind="stable")
        x, labels = X[order].astype(np.float64), labels[order]
        batch.counts = np.bincount(labels)
        starts = np.cumsum(batch.counts) - batch.counts
        batch.means = np.add.reduceat(x, starts, axis=0) / batch.counts[:, None]
        x -= batch.means[labels]
        batch._within = x.T @ x
        if self.form == "dense":
            batch._scatters = np.stack([group.T @ group for group in np.split(x, starts[1:])])
        else:
            batch._scatters = np.add.reduceat(x**2, starts, axis=0)
        self._add(batch)
        return self

    @one_thread()
    def merge(self, *others: ClassStatistics) -> ClassStatistics:
        """Statistics of all samples together, as a new object."""
        merged = ClassStatistics(self.form)
        for one in (self, *others):
            if one.form != self.form:
                raise ParameterError(
                    f"Statistics of forms '{self.form}' and '{one.form}' do not merge: use one form for all parts."
                )
            if not one.is_empty:
                merged._add(one)
        return merged

    def _add(self, other: ClassStatistics) -> None:
        """Add the sums of other samples, class by class."""
        if self.is_empty:
            vars(self).update(deepcopy(vars(other)))
            return
        width, other_width = self.means.shape[1], other.means.shape[1]
        if width != other_width:
            raise InputError(
                f"Statistics of {width} and of {other_width} features do not merge: "
                "extract all features with the same model."
            )
        names = np.unique(joined_labels(self.names, other.names))
        if len(names) > len(self.names):
            # New classes start with zeros.
            place = np.searchsorted(names, self.names)
            for key in ("counts", "means", "_scatters"):
                before = getattr(self, key)
                sums = np.zeros((len(names), *before.shape[1:]), dtype=before.dtype)
                sums[place] = before
                setattr(self, key, sums)
            self.names = names
        place = np.searchsorted(self.names, other.names)
        total = self.counts[place] + other.counts
        share = (other.counts / total)[:, None]
        difference = other.means - self.means[place]
        weighted = self.counts[place][:, None] * share * difference
        self.counts[place] = total
        self.means[place] += share * difference
        self._within = self._within + other._within + weighted.T @ difference
        products = weighted[:, :, None] * difference[:, None, :] if self.form == "dense" else weighted * difference
        self._scatters[place] += other._scatters + products
        self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        self.dtype = np.promote_types(self.dtype, other.dtype)

    @property
    def mean(self) -> np.ndarray:
        """Mean of all samples (V,)."""
        return np.asarray(self.counts @ self.means / self.counts.sum())

    @property
    def pooled_covariance(self) -> np.ndarray:
        """Covariance within classes (V, V); if no class has two samples, that of all samples together."""
        freedom = int((self.counts - 1).sum())
        if freedom:
            return np.asarray(self._within / freedom)
        return np.asarray(self.moment(self.mean) / max(self.counts.sum() - 1, 1))

    @property
    def covariances(self) -> np.ndarray:
        """Covariance of each class, eq. 2: (B, V, V), or variances (B, V); a one-sample class has the pooled one."""
        pooled = self.pooled_covariance if self.form == "dense" else np.diagonal(self.pooled_covariance)
        covariances = self._scatters / np.maximum(self.counts - 1, 1).reshape(-1, *[1] * pooled.ndim)
        covariances[self.counts == 1] = pooled
        return np.asarray(covariances)

    def moment(self, centre: np.ndarray | float = 0.0) -> np.ndarray:
        """Sum over all samples of (x - c)(x - c)' (V, V)."""
        difference = self.means - centre
        return np.asarray(self._within + (self.counts[:, None] * difference).T @ difference)


def gather_statistics(
    partitions: Sequence[Partition], scheduler: str | None, form: str, transform: FeatureTransform | None = None
) -> ClassStatistics:
    """Statistics of all parts of the features after a transform, here or on the Dask cluster of a scheduler."""
    gather = partial(_statistics_of, form, transform)
    if scheduler is None:
        statistics = gather(*partitions)
    else:
        with cluster_client(scheduler) as client:
            wait_for_a_worker(client)
            parts = client.map(gather, list(partitions), pure=False)
            while len(parts) > 1:
                # Pairs are merged on the workers, so that no process holds all partial results.
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = [client.submit(ClassStatistics.merge, *pair, pure=False) for pair in pairs]
            statistics = parts[0].result()
    if statistics.is_empty:
        raise InputError("The partitions hold no samples: pass feature files with samples.")
    return statistics


@one_thread()
def _statistics_of(form: str, transform: FeatureTransform | None, *partitions: Partition) -> ClassStatistics:
    statistics = ClassStatistics(form)
    for part in partitions:
        batches = part() if callable(part) else open_features(part).batches(ROWS_AT_ONCE)
        for X, y in checked_batches([batches] if isinstance(batches, tuple) and len(batches) == 2 else batches):
            statistics.partial_fit(X if transform is None else transform(check_features(X)), y)
    return statistics


@one_thread()
def bank_of_statistics(
    partitions: Sequence[Partition], scheduler: str | None, power: float | str, **parameters: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a bank without samples, in the space of these parameters, and what it would compute from samples.

    The features are read four times: for their extent, for the centre and the leading axes, for the pooled covariance
    in these, and for the statistics in the axes of that; once more for unit vectors if they are not normalised.
    """
    if not len(partitions):
        raise ParameterError("partitions is empty: pass at least one feature file.")
    gather = partial(gather_statistics, partitions, scheduler)
    raw = gather("diagonal")
    space = Space(power=choose_power(power, raw.smallest), **parameters)
    if space.sample_weights != "uniform":
        raise ParameterError("Sample weights by a classifier need the samples: pass sample_weights='uniform'.")
    if space.covariance not in ("dense", "diagonal", "pooled"):
        raise ParameterError(
            f"covariance of a bank without samples must be dense, diagonal or pooled, got {space.covariance!r}."
        )
    is_normalised, dtype = space.normalize is not None, raw.dtype
    plain = base_transform(space, max(raw.largest, -raw.smallest), dtype)
    powered = gather("diagonal", plain)
    centre = centre_of(powered.mean, len(powered.names)) if is_normalised else np.zeros_like(powered.mean)
    leading = np.eye(len(centre))
    if space.n_components is not None:
        leading = leading_axes(powered.moment(centre), space.n_components, raw.counts)
    leading = leading.astype(dtype)
    of_base = replace(plain, centre=centre.astype(dtype) if is_normalised else None, axes=leading, unit=is_normalised)
    spectrum, rotation = principal_axes(gather("diagonal", of_base).pooled_covariance, dtype)
    of_base = replace(of_base, axes=leading @ rotation)
    statistics = gather("dense" if space.covariance == "dense" else "diagonal", of_base)
    means = statistics.means.astype(dtype)
    covariances: Covariances = diagonal(np.tile(spectrum, (len(means), 1)))
    if space.covariance == "dense":
        covariances = Dense(statistics.covariances.astype(dtype))
    elif space.covariance == "diagonal":
        covariances = diagonal(statistics.covariances.astype(dtype))
    prepared = PreparedBase(
        names=statistics.names,
        counts=statistics.counts,
        transform=novel_transform(space, of_base),
        buckets=(),
        means=means,
        weighted_means=means,
        mean_units=means if is_normalised else gather("diagonal", replace(of_base, unit=True)).means.astype(dtype),
        covariances=covariances,
        spectrum=spectrum,
    )
    centres = {1.0: raw.mean}
    if space.power_on_base and space.power_offset == 0:
        # The transform scales the features first.
        mean, scale = powered.mean, plain.scale
        centres[space.power] = mean - np.log(scale) if space.power == 0 else mean / scale**space.power
    names, counts = prepared.names, prepared.counts
    parts = {"names": names, "counts": counts, "samples": None, "prepared": {space: prepared}, "centres": centres}
    return parts, {"smallest": raw.smallest}
