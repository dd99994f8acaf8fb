"""``BaseClasses``: the bank, an object that estimators share."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from hotshot.arrays import array_hash, check_features, one_thread, slices
from hotshot.bank import views
from hotshot.bank.building import Partition, gather_statistics, prepare_statistics, spool_samples
from hotshot.bank.covariances import COVARIANCE_FORMS
from hotshot.bank.feature_space import LEAST_CLASSES, FeatureSpace, feature_space
from hotshot.bank.low_rank import LOW_RANK
from hotshot.bank.space import (
    LEAST_HELD_OUT,
    LEAST_TO_CHOOSE,
    ROWS_AT_ONCE,
    FeatureTransform,
    PreparedBase,
    Space,
    approximate,
    choose_power,
    power_transform,
    prepare,
)
from hotshot.bank.statistics import class_covariances, class_means, classifier_weights
from hotshot.bank.store import DESCRIPTION, StoredBank, check_about, read_bank, write_bank
from hotshot.bank.streaming import FORMS
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import recover, replace_folder
from hotshot.labels import check_labels, joined_labels

# Most prepared spaces that a bank keeps; beyond it the least recently used is dropped.
MOST_SPACES = 8
# Keys of `about`: the extractor of the features, transforms applied to them, and whether the extractor was trained on
# these classes.
EXTRACTOR, TRANSFORM, SEEN = "extractor", "transform", "seen_in_training"

# n_components=1 (one axis) and 1.0 (all of the variance) are equal numbers but different spaces.
Key = tuple[Space, type]


class BaseClasses:
    """Base classes: classes with many labelled samples, from which novel classes borrow means and covariances.

    Create a bank with ``from_samples``; with ``from_batches`` or ``from_partitions`` if the features do not fit in
    memory; or with ``load``. A bank does not change after that, so estimators and threads can share it.

    Parameters
    ----------
    stored : StoredBank
        The parts of a bank, from one of the class methods above.

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

    def __init__(self, stored: StoredBank) -> None:
        self.samples = stored.samples
        self.counts = stored.counts
        self.names = stored.names
        self.n_features = stored.n_features
        self.dtype = stored.dtype
        self.about = stored.about
        self._smallest = stored.smallest
        self._centres = dict(stored.centres)
        # Spaces from a folder are always kept, those prepared here up to `MOST_SPACES`.
        self._stored: dict[Key, PreparedBase] = {_key(space): p for space, p in stored.spaces.items()}
        self._prepared: dict[Key, PreparedBase] = {}
        self._lock, self.choosing = RLock(), RLock()
        # Settings chosen on these classes, as JSON, by estimator.
        self.choices: dict[str, Any] = dict(stored.choices)
        if stored.content_hash:
            self.__dict__["content_hash"] = stored.content_hash
        if stored.feature_space is not None:
            self.__dict__["feature_space"] = stored.feature_space

    @classmethod
    def from_samples(
        cls,
        X: Any,
        y: Any,
        *,
        max_samples: int | None = None,
        seed: int = 0,
        seen_in_training: bool | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> BaseClasses:
        """Create a bank from features and their labels.

        Parameters
        ----------
        X : array (samples, V)
            Finite features of any real dtype; shorter floats than float32 become float32.
        y : array (samples,)
            Labels of any sortable type, in any order.
        max_samples : int, optional
            Maximum number of samples per class; larger classes are subsampled at random.
        seed : int
            Seed of the subsampling.
        seen_in_training : bool, optional
            Whether the extractor was trained on these classes. Such classes are too easy to choose settings on, so
            that only the power is chosen.
        about : dict, optional
            Where the features come from, kept with the bank; its "extractor" is copied to saved models.

        Returns
        -------
        BaseClasses
            The bank.

        Examples
        --------
        >>> import numpy as np
        >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
        >>> base
        BaseClasses(2 classes, 20 samples, 4 features)
        """
        X = check_features(X, "X_base")
        names, labels = check_labels(y, len(X), "y_base")
        if max_samples is not None and (not isinstance(max_samples, int) or max_samples < 1):
            raise ParameterError(f"max_samples must be a positive integer or None, got {max_samples!r}.")
        order = np.argsort(labels, kind="stable")
        if max_samples is not None:
            rng = np.random.default_rng(seed)
            groups = np.split(order, np.cumsum(np.bincount(labels))[:-1])
            order = np.concatenate([np.sort(rng.permutation(group)[:max_samples]) for group in groups])
        counts = np.bincount(labels[order], minlength=len(names))
        # Sorted samples that nobody can change, such as a memory-mapped file, need no copy.
        sorted_already = not X.flags.writeable and len(order) == len(X) and (np.diff(order) == 1).all()
        seen = {} if seen_in_training is None else {SEEN: bool(seen_in_training)}
        return cls(_of_samples(X if sorted_already else X[order], counts, names, {**(about or {}), **seen}))

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[tuple[Any, Any]],
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
        samples, covariance
            As in ``save``.
        about : dict, optional
            Where the features come from, kept with the bank.
        overwrite : bool
            Whether to replace a bank of that name.

        Returns
        -------
        BaseClasses
            The bank, loaded from the folder.
        """
        # Checked before a pass that may take hours.
        _check_form(samples, covariance)
        check_about(about)
        with replace_folder(path, DESCRIPTION, overwrite) as folder:
            bank = cls(_of_samples(*spool_samples(batches, folder), about))
            bank._write(folder, samples, covariance)
            del bank
        return cls.load(path)

    @classmethod
    @one_thread()
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

        Returns
        -------
        BaseClasses
            The bank, in memory.
        """
        gather = partial(gather_statistics, partitions, scheduler=scheduler)
        extent = gather(form="pooled")
        power = choose_power(power, extent.smallest)
        wanted = Space(power=power, covariance=covariance, **space)
        prepared, raw = prepare_statistics(gather, wanted, extent)
        centres = {1.0: extent.mean}
        if wanted.power_on_base and wanted.power_offset == 0:
            # The centre of unscaled features: the transform scales them first.
            scale = prepared.transform.scale
            centres[power] = raw.mean - np.log(scale) if power == 0 else raw.mean / scale**power
        width, spaces = extent.means.shape[1], {wanted: prepared}
        return cls(StoredBank(raw.names, raw.counts, None, width, extent.dtype, extent.smallest, spaces, centres))

    @classmethod
    def load(cls, path: str | Path) -> BaseClasses:
        """Load a bank from a folder that ``save``, ``from_batches`` or ``hotshot convert`` wrote.

        Its arrays are mapped into memory: loading is fast, and only what is needed is read later.

        Parameters
        ----------
        path : path
            Folder of the bank.

        Returns
        -------
        BaseClasses
            The bank.
        """
        return cls(read_bank(path))

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
        self, folder: Path, samples: bool, covariance: str | None, spaces_to_write: Sequence[Space] | None = None
    ) -> None:
        with self._lock:
            wanted = [key[0] for key in (*self._stored, *self._prepared)] or [Space(power=self.power("auto"))]
        wanted = wanted if spaces_to_write is None else list(spaces_to_write)
        reduced = self.samples is not None and not samples
        if self.samples is None and covariance is not None:
            raise ParameterError("This bank keeps no samples, so covariance cannot change: leave it out.")
        _check_form(not reduced, covariance)
        if reduced:
            # Spaces that differ only in the form of their covariances are the same now.
            wanted = list(dict.fromkeys(replace(space, covariance=str(covariance)) for space in wanted))
        spaces = {space: self.prepare(space) for space in wanted}
        if reduced:
            spaces = {space: replace(prepared, buckets=()) for space, prepared in spaces.items()}
        for power in {1.0, *(space.power for space in spaces)}:
            if self.samples is not None or power in self._centres:
                self.centre(power)
        content_hash = self.content_hash
        if reduced:
            content_hash = hashlib.sha256(f"{content_hash} {sorted(map(repr, spaces))}".encode()).hexdigest()
        stored = StoredBank(
            names=self.names,
            counts=self.counts,
            samples=self.samples if samples else None,
            spaces=spaces,
            centres=self._centres,
            n_features=self.n_features,
            dtype=self.dtype,
            smallest=self._smallest,
            content_hash=content_hash,
            about=self.about,
            choices=self.choices,
            feature_space=self.feature_space,
        )
        write_bank(folder, stored)

    def with_samples(self, X: Any, y: Any) -> BaseClasses:
        """A bank with more samples of the same classes.

        Parameters
        ----------
        X : array (samples, V)
            Further samples.
        y : array (samples,)
            Their labels; all must be classes of the bank.

        Returns
        -------
        BaseClasses
            A new bank; it keeps the settings that were chosen on this one, which a few samples do not change.

        Examples
        --------
        >>> import numpy as np
        >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
        >>> base.with_samples(np.random.rand(1, 4), ["dog"]).counts
        array([10, 11])
        """
        samples, X = self._needed_samples("a sample more"), check_features(X)
        names, members = check_labels(y, len(X))
        joined_labels(self.names, names)
        strange = np.setdiff1d(names, self.names)
        if len(strange):
            raise InputError(f"'{strange[0]}' is not a class of this bank: pass samples of its classes.")
        if X.shape[1] != self.n_features:
            raise InputError(f"X has {X.shape[1]} features and the bank has {self.n_features}: pass as many.")
        labels = np.concatenate([self.labels, np.searchsorted(self.names, names)[members]])
        together = np.concatenate([samples, X.astype(samples.dtype)])[np.argsort(labels, kind="stable")]
        bank = BaseClasses(_of_samples(together, np.bincount(labels), self.names, self.about))
        bank.choices, bank.chosen_on = self.choices, self.chosen_on
        return bank

    def transform(self, f: Any) -> BaseClasses:
        """Apply a transform to the samples, as it is applied to novel samples.

        Parameters
        ----------
        f : fitted transformer or function
            A fitted transformer of scikit-learn, or a function from features (samples, V) to as many features
            (samples, W).

        Returns
        -------
        BaseClasses
            A new bank of the same classes with transformed samples.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.preprocessing import StandardScaler
        >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
        >>> scaler = StandardScaler().fit(base.samples)
        >>> base.transform(scaler)
        BaseClasses(2 classes, 20 samples, 4 features)
        """
        samples = self._needed_samples("a transform of features")
        apply: Callable[[Any], Any] = getattr(f, "transform", f)
        if not callable(apply) or isinstance(f, type):
            raise ParameterError(f"f must be a fitted transformer or a function on arrays, got {f!r:.60}.")
        name = getattr(f, "__name__", type(f).__name__)
        found = check_features(apply(samples), f"The result of {name}")
        if len(found) != len(samples):
            raise InputError(
                f"The result of {name} has {len(found)} rows for {len(samples)} samples: return one for each."
            )
        before = self.about.get(TRANSFORM)
        about = {**self.about, TRANSFORM: name if before is None else f"{before}, {name}"}
        return BaseClasses(_of_samples(found, self.counts, self.names, about))

    def __repr__(self) -> str:
        of_samples = "" if self.samples is not None else "statistics of "
        samples = f"{of_samples}{self.counts.sum()} samples"
        return f"BaseClasses({len(self.names)} classes, {samples}, {self.n_features} features)"

    def _repr_html_(self) -> str:
        return views.as_html(self)

    def __sklearn_clone__(self) -> BaseClasses:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What is large and quickly computed again is left out.
        kept = (
            "samples", "counts", "names", "n_features", "dtype", "about", "content_hash", "choices",
            "chosen_on", "feature_space", "_centres", "_smallest",
        )  # fmt: skip
        own = {name: x for name, x in self.__dict__.items() if name in kept}
        return {**own, "_prepared": {}, "_stored": self._stored if self.samples is None else {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
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
    def content_hash(self) -> str:
        """SHA-256 of the samples, or of the statistics of a bank without samples; loaded banks have it from a file."""
        if self.samples is not None:
            return array_hash(self.samples)
        parts = [array_hash(p.means) + array_hash(p.spectrum) + repr(key) for key, p in self._stored.items()]
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
    def covariances(self) -> np.ndarray:
        """Covariance of each class (B, V, V), eq. 2; a class of one sample gets the pooled covariance."""
        return class_covariances(self._needed_samples("a covariance of raw features"), self.counts)

    @one_thread()
    def sample_weights(self, temperature: float = 1.0) -> np.ndarray:
        """Sample weights (samples,) from a base classifier on the raw features; they sum to 1 for each class.

        Parameters
        ----------
        temperature : float
            Temperature of the softmax over the classifier's probabilities.

        Returns
        -------
        array (samples,)
            Weights, in the order of ``samples``.
        """
        return classifier_weights(self._needed_samples("a base classifier"), self.labels, temperature)

    @one_thread()
    def weighted_means(self, temperature: float = 1.0) -> np.ndarray:
        """Mean of each class by sample weight (B, V).

        Parameters
        ----------
        temperature : float
            As in ``sample_weights``.

        Returns
        -------
        array (B, V)
            Means, in the order of ``names``.
        """
        samples = self._needed_samples("a mean by sample weight")
        return class_means(samples, self.counts, self.sample_weights(temperature))

    @cached_property
    @one_thread()
    def feature_space(self) -> FeatureSpace | None:
        """Usual norms and directions of the samples, to detect features of another kind; None in small banks."""
        enough = self.samples is not None and len(self.names) >= LEAST_CLASSES
        return feature_space(self._needed_samples("its space"), self.labels) if enough else None

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
        named = set(map(str, classes)) if isinstance(classes, list) else set()
        return self.seen_in_training is True or not named.isdisjoint(map(str, self.names))

    @property
    def can_hold_out(self) -> bool:
        """Whether settings can be chosen on held-out classes: there are samples, and enough classes."""
        return self.samples is not None and int(np.sum(self.counts >= LEAST_HELD_OUT)) >= LEAST_TO_CHOOSE

    def power(self, power: float | str) -> float:
        """The power itself; for "auto" 0.5 if no base feature is negative, else 1.

        Parameters
        ----------
        power : float or "auto"
            Power of the transform.

        Returns
        -------
        float
            The power to use.
        """
        return choose_power(power, self._smallest)

    def centre(self, power: float) -> np.ndarray:
        """Mean of all power-transformed samples (V,); computed on the first call and kept.

        Parameters
        ----------
        power : float
            Power of the transform.

        Returns
        -------
        array (V,)
            The centre.
        """
        if power not in self._centres:
            samples = self._needed_samples(f"the centre of features to the power {power:g}")
            totals = [
                power_transform(samples[rows], power, name="X_base").sum(axis=0, dtype=np.float64)
                for rows in slices(len(samples), ROWS_AT_ONCE)
            ]
            self._centres[power] = np.sum(totals, axis=0) / len(samples)
        return self._centres[power]

    def prepare(self, space: Space) -> PreparedBase:
        """The bank in a space; computed on the first call and kept.

        Parameters
        ----------
        space : Space
            Transform of the features and form of the covariances.

        Returns
        -------
        PreparedBase
            Means, covariances and samples in that space.
        """
        key = _key(space)
        if key in self._stored:
            return self._stored[key]
        if self.samples is None:
            return self._stored_like(space)
        # Threads that want the same space wait for the one that prepares it.
        with self._lock:
            prepared = self._prepared.pop(key, None) or self._approximated(space) or self._prepare(space)
            self._prepared[key] = prepared
            if len(self._prepared) > MOST_SPACES:
                del self._prepared[next(iter(self._prepared))]
        return prepared

    def prepared_by(self, transform: FeatureTransform) -> dict[Key, PreparedBase]:
        """Prepared spaces with this transform of features, for ``adopt``.

        Parameters
        ----------
        transform : FeatureTransform
            Transform of one of the prepared spaces.

        Returns
        -------
        dict
            Prepared spaces by key.
        """
        with self._lock:
            return {key: prepared for key, prepared in self._prepared.items() if prepared.transform is transform}

    def adopt(self, spaces: Mapping[Key, PreparedBase]) -> None:
        """Use spaces that another copy of this bank has prepared.

        Parameters
        ----------
        spaces : dict
            Result of ``prepared_by``.
        """
        with self._lock:
            self._prepared = {**spaces, **self._prepared}

    @one_thread()
    def _prepare(self, space: Space) -> PreparedBase:
        return prepare(self._needed_samples("a new space"), self.counts, self.names, space)

    def _approximated(self, space: Space) -> PreparedBase | None:
        """The space from a stored one that differs only in exact covariances, if there is one."""
        if COVARIANCE_FORMS[space.covariance].approximate is None:
            return None
        # Only from the folder: spaces prepared here depend on earlier calls.
        exact_forms = [name for name, form in COVARIANCE_FORMS.items() if form.approximate is None]
        keys = [_key(replace(space, covariance=name)) for name in exact_forms]
        exact = next((self._stored[key] for key in keys if key in self._stored), None)
        return None if exact is None else approximate(exact, space.covariance)

    def _stored_like(self, space: Space) -> PreparedBase:
        """The stored space that equals ``space`` except for the form of its covariances, which "auto" leaves open."""
        like = {key: p for key, p in self._stored.items() if _key(replace(key[0], covariance="auto")) == _key(space)}
        if like:
            return next(iter(like.values()))
        kept = "; ".join(", ".join(f"{name}={value!r}" for name, value in vars(key[0]).items()) for key in self._stored)
        raise ParameterError(
            f"This bank keeps no samples and was saved for {kept}: use these parameters, or a bank with samples."
        )


def is_bank(path: str | Path) -> bool:
    """Whether a folder holds the description of a bank."""
    return os.path.isfile(recover(path) / DESCRIPTION)


def _check_form(samples: bool, covariance: str | None) -> None:
    """Raise unless the form of covariances is passed if, and only if, no samples are saved."""
    known = (LOW_RANK, *FORMS)
    if not samples and covariance not in known:
        raise ParameterError(
            f"covariance must be one of {', '.join(known)} if samples are not saved, got {covariance!r}."
        )
    if samples and covariance is not None:
        raise ParameterError("covariance is for banks saved without samples: pass samples=False, or leave it out.")


def _key(space: Space) -> Key:
    # NumPy's integers count axes too.
    return space, int if isinstance(space.n_components, Integral) else type(space.n_components)


def _of_samples(samples: np.ndarray, counts: np.ndarray, names: np.ndarray, about: dict[str, Any] | None) -> StoredBank:
    smallest, width = float(samples.min()), samples.shape[1]
    return StoredBank(names, counts, samples, width, samples.dtype, smallest, about={} if about is None else about)
