"""``BaseClasses``: the bank, an object that estimators share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from hotshot.arrays import array_hash, check_features, check_labels, joined_labels, one_thread, slices
from hotshot.bank.building import Partition, bank_of_statistics, spool_samples
from hotshot.bank.covariances import LOW_RANK, class_means
from hotshot.bank.space import (
    LEAST_HELD_OUT,
    LEAST_TO_CHOOSE,
    ROWS_AT_ONCE,
    FeatureSpace,
    PreparedBase,
    Space,
    choose_power,
    feature_space,
    power_transform,
    prepare,
)
from hotshot.bank.store import DESCRIPTION, check_about, read_bank, write_bank
from hotshot.errors import InputError, ParameterError, SharedClassWarning, warn_user
from hotshot.files.atomic import replace_folder
from hotshot.formatting import count, listing, quoted

# Forms of the covariances of a bank without samples.
FORMS = (LOW_RANK, "dense", "diagonal", "pooled")
# Most prepared spaces that a bank keeps; beyond it the least recently used is dropped.
MOST_SPACES = 8
# Keys of `about`: the extractor of the features, transforms applied to them, and whether the extractor was trained on
# these classes.
EXTRACTOR, TRANSFORM, SEEN = "extractor", "transform", "seen_in_training"


@dataclass(eq=False, repr=False)
class BaseClasses:
    """Base classes: classes with many labelled samples, from which novel classes borrow means and covariances.

    Create a bank with ``from_samples``; with ``from_batches`` or ``from_partitions`` if the features do not fit in
    memory; or with ``load``. A bank does not change after that, so estimators and threads can share it.

    Attributes
    ----------
    names : array (B,)
        Class labels, sorted.
    counts : array (B,)
        Number of samples per class.
    samples : array (sum(counts), V) or None
        Features, class by class in the order of ``names``; None in a bank of statistics.
    dtype : dtype
        Precision of computations with the features, float32 or float64.
    n_features : int
        Width of the features, V.
    about : dict
        Where the features come from, if known.

    See Also
    --------
    HOTClassifier : The classifier that borrows from a bank.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import BaseClasses
    >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
    >>> base
    BaseClasses(2 classes, 20 samples, 4 features)
    """

    names: np.ndarray
    counts: np.ndarray
    samples: np.ndarray | None
    about: dict[str, Any] = field(default_factory=dict)
    # The bank in the spaces that it was prepared in, the last used last.
    prepared: dict[Space, PreparedBase] = field(default_factory=dict)
    # Means of all samples by power, and settings chosen on these classes, as JSON, by estimator.
    centres: dict[float, np.ndarray] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.samples is None:
            axes = next(iter(self.prepared.values())).transform.axes
            assert axes is not None
            self.n_features, self.dtype = len(axes), axes.dtype
        else:
            self.n_features, self.dtype = self.samples.shape[1], self.samples.dtype
        # Those from a folder take no memory.
        self._mapped = frozenset(self.prepared)
        self._lock, self.choosing = RLock(), RLock()

    @classmethod
    def from_samples(
        cls, X: Any, y: Any, *, seen_in_training: bool | None = None, about: Mapping[str, Any] | None = None
    ) -> BaseClasses:
        """Create a bank from features and their labels.

        Parameters
        ----------
        X : array (samples, V)
            Finite features of any real dtype; shorter floats than float32 become float32.
        y : array (samples,)
            Labels of any sortable type, in any order.
        seen_in_training : bool, optional
            Whether the extractor was trained on these classes. Such classes are too easy to choose settings on, so
            that only the power is chosen.
        about : dict, optional
            Where the features come from, kept with the bank; its "extractor" is copied to saved models.
        """
        X = check_features(X, "X_base")
        names, labels = check_labels(y, len(X), "y_base")
        order = np.argsort(labels, kind="stable")
        # Sorted samples that nobody can change, such as a memory-mapped file, need no copy.
        is_sorted = not X.flags.writeable and (np.diff(order) == 1).all()
        seen = {} if seen_in_training is None else {SEEN: bool(seen_in_training)}
        return cls(names, np.bincount(labels), X if is_sorted else X[order], {**(about or {}), **seen})

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Any],
        path: str | Path,
        *,
        samples: bool = True,
        covariance: str | None = None,
        about: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> BaseClasses:
        """Create a bank in a folder from one pass over batches of features, which need not fit in memory.

        Samples are written to the folder as they arrive and sorted there; the default space of ``HOTClassifier`` is
        prepared from them. Memory holds one batch, and the samples in the axes of that space.

        Parameters
        ----------
        batches : iterable of (X, y)
            Features (rows, V) and labels (rows,), classes in any order.
        path : path
            Folder of the bank; ``load`` opens it again.
        samples, covariance, overwrite
            As in ``save``.
        about : dict, optional
            Where the features come from, kept with the bank.
        """
        # Checked before a pass that may take hours.
        _check_form(not samples, covariance)
        check_about(about)
        with replace_folder(path, DESCRIPTION, overwrite) as folder:
            bank = cls(*spool_samples(batches, folder), dict(about or {}))
            bank._write(folder, samples, covariance)
            del bank
        return cls.load(path)

    @classmethod
    def from_partitions(
        cls,
        partitions: Sequence[Partition],
        *,
        power: float | str = "auto",
        covariance: str = "diagonal",
        scheduler: str | None = None,
        **space: Any,
    ) -> BaseClasses:
        """Create a bank of statistics from parts of the features, on this machine or on a Dask cluster.

        Each worker reads its parts several times and sends statistics only. The bank keeps no samples, so it can be
        used with costs that need none, such as "mean-cosine".

        Parameters
        ----------
        partitions : sequence of paths or functions
            Feature files, which all workers must be able to read, or functions without parameters that return features
            and labels or an iterator of such batches.
        power : float or "auto"
            Power of the transform.
        covariance : {"diagonal", "pooled", "dense"}
            Form of the covariances.
        scheduler : str, optional
            Address of a Dask scheduler, such as "tcp://host:8786".
        **space
            Further parameters of the space; by default those of ``HOTClassifier``.
        """
        return cls._from_parts(*bank_of_statistics(partitions, scheduler, power, covariance=covariance, **space))

    @classmethod
    def load(cls, path: str | Path) -> BaseClasses:
        """Load a bank from a folder that ``save``, ``from_batches`` or ``hotshot convert`` wrote.

        Its arrays are mapped into memory: loading is fast, and only what is needed is read later.
        """
        return cls._from_parts(*read_bank(path))

    @classmethod
    def _from_parts(cls, parts: Mapping[str, Any], computed: Mapping[str, Any]) -> BaseClasses:
        # What a bank computes from its samples at the first use is known here.
        bank = cls(**parts)
        vars(bank).update(computed)
        return bank

    def save(
        self,
        path: str | Path,
        *,
        samples: bool = True,
        covariance: str | None = None,
        spaces: Sequence[Space] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the bank to a folder, with the spaces it is prepared in (by default that of ``HOTClassifier``).

        Parameters
        ----------
        path : path
            Folder of the bank, such as "birds.bank".
        samples : bool
            Whether to keep samples. Without them the bank is many times smaller and works only in the saved spaces,
            with costs that need no samples, such as "mean-cosine".
        covariance : {"low-rank", "diagonal", "pooled", "dense"}, optional
            Form of the covariances in a bank without samples: leading axes of each class and variances of the rest,
            variances of each class along the axes of the pooled covariance, the pooled covariance alone, or all
            matrices (B, V, V). Required with ``samples=False``, and only then.
        spaces : sequence of Space, optional
            Spaces to write; by default those the bank is prepared in.
        overwrite : bool
            Whether to replace a bank of that name.
        """
        with replace_folder(path, DESCRIPTION, overwrite) as folder:
            self._write(folder, samples, covariance, spaces)

    def _write(
        self, folder: Path, samples: bool, covariance: str | None, spaces: Sequence[Space] | None = None
    ) -> None:
        is_reduced = self.samples is not None and not samples
        _check_form(is_reduced, covariance)
        with self._lock:
            spaces = spaces or list(self.prepared) or [Space(power=self.power("auto"))]
        content_hash = self.content_hash
        if self.samples is not None:
            for power in {1.0, *(space.power for space in spaces)}:
                self.centre(power)
        if is_reduced:
            # Spaces that differ only in the form of their covariances are the same now.
            spaces = list(dict.fromkeys(replace(space, covariance=str(covariance)) for space in spaces))
            content_hash = hashlib.sha256(f"{content_hash} {sorted(map(repr, spaces))}".encode()).hexdigest()
        prepared = {space: self.prepare(space) for space in spaces}
        if is_reduced:
            prepared = {space: replace(bank, buckets=()) for space, bank in prepared.items()}
        write_bank(folder, self, self.samples if samples else None, prepared, content_hash)

    def with_samples(self, X: Any, y: Any) -> BaseClasses:
        """A bank with more samples (samples, V) of its classes ``y``; settings chosen on this one stay."""
        samples, X = self._needed_samples("a sample more"), check_features(X, width=self.n_features)
        names, members = check_labels(y, len(X))
        joined_labels(self.names, names)
        strange = np.setdiff1d(names, self.names)
        if len(strange):
            raise InputError(f"'{strange[0]}' is not a class of this bank: pass samples of its classes.")
        labels = np.concatenate([self.labels, np.searchsorted(self.names, names)[members]])
        together = np.concatenate([samples, X.astype(samples.dtype)])[np.argsort(labels, kind="stable")]
        bank = BaseClasses(self.names, np.bincount(labels), together, self.about, choices=self.choices)
        bank.chosen_on = self.chosen_on
        return bank

    def transform(self, f: Any) -> BaseClasses:
        """A bank of transformed samples, as novel samples are transformed.

        ``f`` is a fitted transformer of scikit-learn, or a function from features (samples, V) to (samples, W).
        """
        samples = self._needed_samples("a transform of features")
        apply: Callable[[Any], Any] = getattr(f, "transform", f)
        if not callable(apply) or isinstance(f, type):
            raise ParameterError(f"f must be a fitted transformer or a function on arrays, got {f!r:.60}.")
        name = getattr(f, "__name__", type(f).__name__)
        transformed = check_features(apply(samples), f"The result of {name}")
        if len(transformed) != len(samples):
            raise InputError(
                f"The result of {name} has {len(transformed)} rows for {len(samples)} samples: return one for each."
            )
        before = self.about.get(TRANSFORM)
        about = {**self.about, TRANSFORM: name if before is None else f"{before}, {name}"}
        return BaseClasses(self.names, self.counts, transformed, about)

    def __repr__(self) -> str:
        kind = "" if self.samples is not None else "statistics of "
        return f"BaseClasses({len(self.names)} classes, {kind}{self.counts.sum()} samples, {self.n_features} features)"

    def __sklearn_clone__(self) -> BaseClasses:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What is large and quickly computed again is left out.
        left_out = ("_lock", "choosing", "labels", "means")
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**state, "prepared": self.prepared if self.samples is None else {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock, self.choosing = RLock(), RLock()

    def _needed_samples(self, what: str) -> np.ndarray:
        if self.samples is None:
            raise ParameterError(f"This bank keeps no samples, which {what} needs: save it with samples=True.")
        return self.samples

    @cached_property
    def labels(self) -> np.ndarray:
        """Index of the class of each sample (samples,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def smallest(self) -> float:
        """Smallest entry of the features."""
        return float(self._needed_samples("the smallest entry").min())

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the samples, or of the statistics of a bank without samples; loaded banks have it from a file."""
        if self.samples is not None:
            return array_hash(self.samples)
        parts = [array_hash(p.means) + array_hash(p.spectrum) + repr(space) for space, p in self.prepared.items()]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of samples, counts and names; banks with equal fingerprints give equal results."""
        names = json.dumps(self.names.tolist(), default=repr)
        return hashlib.sha256("".join([self.content_hash, array_hash(self.counts), names]).encode()).hexdigest()

    @cached_property
    def chosen_on(self) -> str:
        """Fingerprint of the bank that the ``choices`` were made on: this one, or the one before samples were added."""
        return self.fingerprint

    @cached_property
    def means(self) -> np.ndarray:
        """Mean of each class (B, V), eq. 2."""
        return class_means(self._needed_samples("a mean of raw features"), self.counts)

    @cached_property
    @one_thread()
    def feature_space(self) -> FeatureSpace | None:
        """Usual norms and directions of the samples, to detect features of another kind; None in small banks."""
        if self.samples is None or len(self.names) < LEAST_TO_CHOOSE:
            return None
        return feature_space(self.samples, self.labels)

    @property
    def extractor(self) -> str | None:
        """Name of the extractor of the features; None if unknown."""
        return None if self.about.get(EXTRACTOR) is None else str(self.about[EXTRACTOR])

    @property
    def seen_in_training(self) -> bool | None:
        """Whether the extractor of the features was trained on these classes; None if unknown."""
        seen = self.about.get(SEEN)
        return seen if isinstance(seen, bool) else None

    @property
    def trained_on(self) -> bool:
        """Whether the header of the features says that the extractor was trained on one of these classes."""
        network = self.about.get("network")
        classes = network.get("trained_on") if isinstance(network, dict) else None
        trained = set(map(str, classes)) if isinstance(classes, list) else set()
        return self.seen_in_training is True or not trained.isdisjoint(map(str, self.names))

    @property
    def can_hold_out(self) -> bool:
        """Whether settings can be chosen on held-out classes: there are samples, and enough classes."""
        return self.samples is not None and int(np.sum(self.counts >= LEAST_HELD_OUT)) >= LEAST_TO_CHOOSE

    def power(self, power: float | str) -> float:
        """The power itself; for "auto" 0.5 if no base feature is negative, else 1."""
        return choose_power(power, self.smallest)

    def centre(self, power: float) -> np.ndarray:
        """Mean of all power-transformed samples (V,); computed on the first call and kept."""
        if power not in self.centres:
            samples = self._needed_samples(f"the centre of features to the power {power:g}")
            totals = [
                power_transform(samples[rows], power, name="X_base").sum(axis=0, dtype=np.float64)
                for rows in slices(len(samples), ROWS_AT_ONCE)
            ]
            self.centres[power] = np.sum(totals, axis=0) / len(samples)
        return self.centres[power]

    def prepare(self, space: Space) -> PreparedBase:
        """The bank in a space: means, covariances and samples; computed on the first call and kept."""
        if self.samples is None:
            return self._saved(space)
        # Threads that want the same space wait for the one that prepares it.
        with self._lock:
            prepared = self.prepared.pop(space, None)
            if prepared is None:
                with one_thread():
                    prepared = prepare(self.samples, self.counts, self.names, space)
            self.prepared[space] = prepared
            in_memory = [other for other in self.prepared if other not in self._mapped]
            if len(in_memory) > MOST_SPACES:
                del self.prepared[in_memory[0]]
        return prepared

    def _saved(self, space: Space) -> PreparedBase:
        """The space that was saved; "auto" leaves the form of its covariances open."""
        for other, prepared in self.prepared.items():
            if space in (other, replace(other, covariance="auto")):
                return prepared
        saved = "; ".join(str(other).removeprefix("Space(").removesuffix(")") for other in self.prepared)
        raise ParameterError(
            f"This bank keeps no samples and was saved for {saved}: use these parameters, or a bank with samples."
        )

    def warn_of_shared_names(self, names: np.ndarray) -> None:
        """Warn if novel classes have the names of base classes; equal numbers are ignored."""
        shared = sorted({name for name in names.tolist() if isinstance(name, str)}.intersection(self.names.tolist()))
        if shared:
            singular, plural = (
                "novel class has the name of a base class",
                "novel classes have the names of base classes",
            )
            remedy = "leave them out of the bank, or rename them if they only share the name"
            have = count(len(shared), singular, plural)
            warn_user(f"{have}, {listing(map(quoted, shared))}: {remedy}.", SharedClassWarning)


def _check_form(is_reduced: bool, covariance: str | None) -> None:
    """Raise unless the form of covariances is passed if, and only if, samples are left out."""
    if is_reduced and covariance not in FORMS:
        raise ParameterError(
            f"covariance must be one of {', '.join(FORMS)} if samples are not saved, got {covariance!r}."
        )
    if not is_reduced and covariance is not None:
        raise ParameterError("covariance is for banks saved without samples: pass samples=False, or leave it out.")
