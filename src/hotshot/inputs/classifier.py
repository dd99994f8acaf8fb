"""A classifier of raw inputs that can be saved: an encoder, a bank of old classes, and H-OT."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from threading import Lock
from typing import Any, Self

import numpy as np

from hotshot.bank import BaseClasses, is_bank
from hotshot.bank.bank import EXTRACTOR
from hotshot.bank.store import DESCRIPTION as BANK_DESCRIPTION
from hotshot.classifiers.classifier import assign, check_names, snapshot
from hotshot.classifiers.hot import HOTClassifier
from hotshot.classifiers.models import DESCRIPTION, UnloadedBase, digest_of, write_model
from hotshot.encoders import Encoder, encoder_kind, load_encoder, runs_code
from hotshot.errors import InputError, LeftOutWarning, ParameterError, RunError
from hotshot.files.atomic import link_or_copy, one_at_a_time, real, replace_folder, write_json
from hotshot.files.objects import read_folder, read_json_document, refuse_damage
from hotshot.files.reading import by_suffix
from hotshot.files.tables import STDIN_NAME, SUFFIXES, TEXT_NAMES, is_table, naming, open_table
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.formatting import count, did_you_mean, listing, quoted
from hotshot.images.tree import is_image
from hotshot.inputs.answers import NONE
from hotshot.inputs.explaining import Examples, InputExplanation, explain_inputs
from hotshot.inputs.rows import (
    BY_NAME,
    FEATURES,
    IMAGES,
    PATH,
    TEXTS,
    Columns,
    Inputs,
    Previews,
    Rows,
    decode,
    given_inputs,
    open_inputs,
    unreadable,
)
from hotshot.inputs.suggesting import InputSuggestions
from hotshot.labels import as_text

# Files of a model, in addition to those of its classifier.
INPUTS, OLD, BANK, PREVIOUS = "inputs.json", "old.safetensors", "base.bank", "previous"
WHAT, VERSION = "model of inputs", 2
# Changes of a model in a folder that can be undone.
MOST_UNDONE = 20
# Inputs per batch.
AT_ONCE = {TEXTS: 256, IMAGES: 64, FEATURES: 2**14}
# Thumbnails of each old class that are saved for explanations; of other samples the id is shown.
MOST_THUMBNAILS = 50
NO_LABEL = "has no label in any row: label some rows."
# If old and new classes are in one file, those with at most so many samples are new.
FEW = 10

# Threads load encoders one after another.
_LOADING = Lock()

Watch = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Encoded:
    """Labelled inputs as features (samples, V), with previews."""

    X: np.ndarray
    y: np.ndarray
    shown: Previews
    about: dict[str, Any] = field(default_factory=dict)
    unlabelled: int = 0

    def of(self, some: np.ndarray) -> Encoded:
        """The samples where a boolean array is true."""
        return replace(self, X=self.X[some], y=self.y[some], shown=self.shown[some])

    def examples(self) -> Examples:
        """The samples for explanations."""
        return Examples(self.X, self.y, self.shown)


class InputClassifier:
    """Classify texts, images or features into old classes, new classes or none of these.

    Parameters
    ----------
    encoder : str or None
        Name of an encoder, such as "minilm" (texts) or "efficientnet-lite0" (images), see ``load_encoder``; None if
        inputs are features.
    base : path, BaseClasses or None
        The old classes: a table of texts, a folder of images per class, a feature file, or a bank.
    new_only : bool
        Whether to predict new classes only. By default old classes are predicted too.
    strict : bool
        Whether labelled inputs that cannot be read, such as an empty text or a corrupt image, are an error. By default
        they are left out, with a ``LeftOutWarning``.
    device : str
        PyTorch device, such as "cpu" or "cuda".
    **settings
        Parameters of ``HOTClassifier``.

    Attributes
    ----------
    model : HOTClassifier
        The classifier of the features.
    support : Previews
        Ids, texts and thumbnails of the support samples.

    See Also
    --------
    HOTClassifier : The classifier of features.
    hotshot.encoders.load_encoder : Encoders by name.

    Examples
    --------
    From one table with old questions and one with a few new ones of each class::

        model = InputClassifier("minilm", base="old.csv").fit("new.csv")
        model.predict(["My card was stolen"], reject=0.05)
        print(model.explain(["My card was stolen"]))

    From files of features:

    >>> import tempfile
    >>> import numpy as np
    >>> from hotshot import InputClassifier
    >>> X, y = np.repeat(np.eye(6), 3, axis=0), np.repeat(["cat", "dog", "owl", "rat", "fox", "elk"], 3)
    >>> X = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/old.npz", X=X[:12], y=y[:12])
    ...     np.savez(f"{folder}/new.npz", X=X[12:], y=y[12:])
    ...     model = InputClassifier(base=f"{folder}/old.npz").fit(f"{folder}/new.npz")
    >>> model.new_classes.tolist()
    ['elk', 'fox']
    """

    model: HOTClassifier
    support: Previews

    def __init__(
        self,
        encoder: str | None = None,
        base: str | Path | BaseClasses | None = None,
        *,
        new_only: bool = False,
        strict: bool = False,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.encoder, self.base, self.new_only, self.device = encoder, base, new_only, device
        self.strict, self.settings = strict, settings
        self.kind = FEATURES if encoder is None else encoder_kind(encoder)
        # Whether code that the name of the encoder leads to may be run: the user named it.
        self.trust = True
        self.about: dict[str, Any] = {}
        self.probe: tuple[float, ...] = ()
        # Rows of the last fit that had no label.
        self.unlabelled = 0
        self._loaded: Encoder | None = None
        # The samples of old classes, to be shown.
        self.old: Examples | None = None
        # Where the model was loaded from or saved to, and the digest of its files then.
        self._place: tuple[Path, str] | None = None
        # The bank in that folder.
        self._bank: UnloadedBase | None = None

    def __repr__(self) -> str:
        if not hasattr(self, "model"):
            return f"InputClassifier({self.encoder!r}, not fitted)"
        old, new = len(self.classes) - len(self.new_classes), count(len(self.new_classes), "new class", "new classes")
        samples = count(len(self.model.support_labels_), "sample")
        return f"InputClassifier({self.encoder!r}, {old} old classes, {new} with {samples})"

    @property
    def classes(self) -> np.ndarray:
        """All classes that can be predicted."""
        return self.model.classes_

    @property
    def new_classes(self) -> np.ndarray:
        """The classes that were learned from a few samples."""
        return np.unique(self.model.support_labels_)

    def fit(
        self,
        support: str | Path | Sequence[str],
        labels: Sequence[Any] | None = None,
        *,
        columns: Columns = BY_NAME,
        base_columns: Columns | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Learn new classes from a few labelled inputs.

        Parameters
        ----------
        support : path or list
            A file or folder of labelled inputs, or a list of inputs.
        labels : list, optional
            Labels of inputs in a list.
        columns : Columns
            Which columns of a table hold texts, labels and ids; by default they are found by name.
        base_columns : Columns, optional
            Columns of the table of old classes, if they differ.
        watch : callable, optional
            Called with (name, done, total) after every batch, for a progress bar.

        Returns
        -------
        self
            The fitted model.
        """
        # What is quickly found comes first: openings, labels and names, then all of the support, and the base last.
        fitted = copy(self)
        fitted.old = None
        new, old = fitted._labelled(support, labels, columns), fitted._opened_base(base_columns or columns)
        new_names = np.array([*_label_counts(new)])
        old_names = np.array([*_label_counts(old)]) if isinstance(old, Inputs) else getattr(old, "names", new_names[:0])
        fitted._check_names(old_names, new_names)
        encoded = fitted.encoded(new, watch)
        fitted._check_names(old_names, encoded.y)
        base = fitted._bank_of(fitted.encoded(old, watch, most=MOST_THUMBNAILS)) if isinstance(old, Inputs) else old
        fitted._fit(base, encoded)
        assign(self, fitted)
        return self

    def fit_together(
        self, path: str | Path, few: int = FEW, columns: Columns = BY_NAME, watch: Watch | None = None
    ) -> Self:
        """Learn old and new classes from one file.

        Parameters
        ----------
        path : path
            A file or folder of labelled inputs.
        few : int
            Classes with at most so many samples are new.
        columns, watch
            As in ``fit``.

        Returns
        -------
        self
            The fitted model.
        """
        if self.base is not None:
            raise ParameterError("fit_together takes the old classes from the file: leave base out.")
        opened = self.opened(path, None, columns)
        _check_few([*_label_counts(opened).values()], few, opened.name)
        both = self.encoded(opened, watch, most=max(few, MOST_THUMBNAILS))
        _, members, counts = np.unique(both.y, return_inverse=True, return_counts=True)
        _check_few(counts, few, opened.name)
        is_new = (counts <= few)[members]
        fitted = copy(self)
        fitted._fit(fitted._bank_of(both.of(~is_new)), both.of(is_new))
        assign(self, fitted)
        return self

    def _bank_of(self, old: Encoded) -> BaseClasses:
        """The bank of old classes; previews of its samples are kept for explanations."""
        self.old = old.examples()
        return BaseClasses.from_samples(old.X, old.y, about=old.about)

    def _check_names(self, old: np.ndarray, new: np.ndarray) -> None:
        """Raise if a class is old and new, unless only new ones are predicted."""
        if len(old) and len(new) and not self.new_only:
            check_names(old, new)

    def _fit(self, base: BaseClasses | None, new: Encoded) -> None:
        include = base is not None and not self.new_only
        new = self._distinct(new, {})
        self.model = HOTClassifier(base, include_base=include, **self.settings).fit(new.X, new.y)
        self.support, self.about, self.unlabelled = new.shown, new.about, new.unlabelled
        self._place = self._bank = None

    def _distinct(self, new: Encoded, known: Mapping[Any, Any]) -> Encoded:
        """Without samples that the model knows (labels by content), that repeat another, or that have several labels.

        Samples labelled "none of these" are left out too: that is an answer and not a class.
        """
        labels: dict[Any, set[str]] = {key: {label} for key, label in known.items()}
        contents = new.shown.contents(new.X)
        for content, label in zip(contents, new.y.tolist(), strict=True):
            labels.setdefault(content, set()).add(label)
        wrong, seen = [], set(known)
        for name, content, label in zip(new.shown.names(), contents, new.y.tolist(), strict=True):
            if label == NONE:
                wrong.append(f"{name} is labelled '{NONE}', which is no class")
            elif len(labels[content]) > 1:
                wrong.append(f"{name} has the labels {listing(map(quoted, sorted(labels[content])))}")
            elif content in seen:
                wrong.append(f"{name} is a sample of {quoted(label)} already")
            else:
                wrong.append("")
            seen.add(content)
        if not any(wrong):
            return new
        kept = np.array([not reason for reason in wrong])
        sentence = f"{count(int((~kept).sum()), 'sample')} cannot be used: {listing(filter(None, wrong))}"
        if self.strict or not kept.any():
            raise InputError(f"{sentence}; correct or remove them.")
        warnings.warn(f"{sentence}. Left out.", LeftOutWarning, stacklevel=2)
        return new.of(kept)

    def add(
        self,
        inputs: Any,
        labels: Sequence[Any] | None = None,
        *,
        columns: Columns = BY_NAME,
        watch: Watch | None = None,
    ) -> Self:
        """Add samples of new classes, of old ones, or of classes that the model does not know yet.

        The result is that of a fresh fit to all samples. A sample that the model has already is left out.

        Parameters
        ----------
        inputs, labels, columns, watch
            As ``support`` and the others in ``fit``.

        Returns
        -------
        self
            The fitted model.
        """
        grown = copy(self)
        given = _of_one_class(self._labelled(inputs, labels, columns), inputs)
        new = grown._distinct(self.encoded(given, watch), self._known())
        is_old = np.isin(new.y, np.setdiff1d(self.classes, self.new_classes))
        grown.model = copy(self.model).add(new.X, new.y)
        grown.support, grown.unlabelled = self.previews().joined(new.shown[~is_old]), new.unlabelled
        if is_old.any():
            more = new.of(is_old).examples()
            grown.old = more if self.old is None else self.old + more
        assign(self, grown)
        return self

    def _known(self) -> dict[Any, Any]:
        """Labels of the samples of the model, by content, as far as these are stored."""
        stored = [Examples(self.model.support_, self.model.support_labels_, self.previews())]
        stored += [] if self.old is None else [self.old]
        return {
            content: label
            for some in stored
            for content, label in zip(some.shown.contents(some.X), some.y.tolist(), strict=True)
        }

    def previews(self) -> Previews:
        """Ids, texts and thumbnails of the support samples; of samples added to ``model`` itself, a number.

        Returns
        -------
        Previews
            One for each of ``model.support_labels_``.
        """
        shown, n_samples = self.support, len(self.model.support_labels_)
        if len(shown.ids) == n_samples:
            return shown
        return shown[np.arange(min(n_samples, len(shown.ids)))] + Previews(
            tuple(f"sample {i + 1}" for i in range(len(shown.ids), n_samples))
        )

    def contents(self) -> dict[str, list[str] | int]:
        """What the model holds.

        Returns
        -------
        dict
            For each new class the texts or ids of its samples, for each old class the number of its samples.
        """
        labels, shown = self.model.support_labels_, self.previews()
        new: dict[str, list[str]] = {str(name): [] for name in self.new_classes}
        for label, name in zip(labels.tolist(), shown.texts or shown.ids, strict=True):
            new[str(label)].append(name)
        sizes = np.zeros(0) if self.model.known_ is None else self.model.known_.sizes
        old = {str(name): int(size) for name, size in zip(self.classes, sizes, strict=False) if str(name) not in new}
        return {**new, **old}

    def remove(self, names: Sequence[str] = (), *, samples: Sequence[str] = ()) -> Self:
        """Remove new classes, or single samples of them; the result is that of a fresh fit without them.

        Parameters
        ----------
        names : sequence of str
            Labels of new classes.
        samples : sequence of str
            Ids or texts of samples of new classes.

        Returns
        -------
        self
            The fitted model.
        """
        model, shown = copy(self.model), self.previews()
        kept = ~np.isin(model.support_labels_, names)
        for name in samples:
            places = [i for i, own in enumerate(shown.ids) if name in (own, *shown.texts[i : i + 1])]
            if len(places) != 1:
                which = "several samples of this model" if places else "no sample of this model"
                close = did_you_mean(name, [*shown.ids, *shown.texts])
                raise InputError(f"{quoted(name)} is the name of {which}: pass the id or text of one.{close}")
            kept[places] = False
        for name in names:
            if name not in self.new_classes:
                close = did_you_mean(str(name), list(map(str, self.new_classes)))
                raise InputError(f"{quoted(name)} is not a new class of this model: name one of those.{close}")
        if not kept.any():
            raise InputError("No new class would be left: remove fewer classes or samples.")
        grown = copy(self)
        grown.model = model.learn_again(model.support_[kept], model.support_labels_[kept], model.base)
        grown.support = shown[kept]
        assign(self, grown)
        return self

    def features(self, inputs: Any) -> np.ndarray:
        """Features of inputs; an ``InputError`` lists those that cannot be read.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, or a list or column of texts, paths of images or features.

        Returns
        -------
        array (inputs, V)
            Features.
        """
        return np.concatenate([X for _, X in self.batches(self.opened(inputs), strict=True)])

    def predict(
        self, inputs: Any, *, reject: float | None = None, unknown: Any = None, batch: bool = False
    ) -> np.ndarray:
        """Predict the most probable class of each input; an ``InputError`` lists inputs that cannot be read.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, or a list of texts, paths of images or features.
        reject : float, optional
            Reject inputs that fit no class, and about this share of those that do; see ``HOTClassifier.predict``.
        unknown : object
            Prediction for rejected inputs.
        batch : bool
            Whether to classify the inputs jointly; see ``HOTClassifier.predict_batch``.

        Returns
        -------
        array (inputs,)
            Labels.
        """
        predict = self.model.predict_batch if batch else self.model.predict
        return predict(self.features(inputs), reject=reject, unknown=unknown)

    def predict_proba(self, inputs: Any, *, batch: bool = False) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        inputs, batch
            As in ``predict``.

        Returns
        -------
        array (inputs, classes)
            Probabilities, in the order of ``classes``.
        """
        proba = self.model.predict_proba_batch if batch else self.model.predict_proba
        return proba(self.features(inputs))

    def outlier_score(self, inputs: Any) -> np.ndarray:
        """Outlier score of each input: the larger, the less likely it belongs to any class.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, or a list of texts, paths of images or features.

        Returns
        -------
        array (inputs,)
            Scores, as from ``HOTClassifier.outlier_score``.
        """
        return self.model.outlier_score(self.features(inputs))

    def explain(self, inputs: Any, most: int | None = None, *, reject: float | None = None) -> InputExplanation:
        """Explain predictions; samples are shown by their texts or ids.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, or a list of texts, paths of images or features.
        most : int, optional
            Number of inputs to explain, from the first; by default all.
        reject : float, optional
            As in ``predict``.

        Returns
        -------
        InputExplanation
            It can be printed, and converted with ``to_html(title)``; ``in_words(numbers=True)`` adds the parts of the
            difference between the two logits.
        """
        queries, found = Previews(), []
        for rows, X in self.batches(self.opened(inputs) if not isinstance(inputs, Inputs) else inputs):
            some = rows.readable[: None if most is None else most - len(queries.ids)]
            queries = queries + rows.previews(some)
            found.append(X[: len(some)])
            if len(queries.ids) == most:
                break
        model = snapshot(self)
        return explain_inputs(model.model, np.concatenate(found), queries, model.previews(), model.old, reject)

    def suggest(self, inputs: Any, n: int = 5, *, watch: Watch | None = None) -> InputSuggestions:
        """Suggest which unlabelled inputs to label next; see ``HOTClassifier.suggest``.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, or a list of texts, paths of images or features.
        n : int
            Number of suggestions.
        watch : callable, optional
            Called with (name, done, total) after every batch, for a progress bar.

        Returns
        -------
        InputSuggestions
            It can be printed; ``found`` holds the suggestions, ``ids`` and ``texts`` the suggested inputs.
        """
        opened = inputs if isinstance(inputs, Inputs) else self.opened(inputs)
        parts = list(self.batches(opened, watch))
        found = self.model.suggest(np.concatenate([X for _, X in parts]), n)
        places = [(rows, place) for rows, _ in parts for place in range(len(rows))]
        readable = [row for row, (rows, place) in enumerate(places) if place not in rows.errors]
        found = replace(found, items=tuple(replace(item, index=readable[item.index]) for item in found))
        chosen = [places[row] for row in found.rows]
        content = tuple(rows.content[place] for rows, place in chosen)
        kept = [rows.kept.texts[place] for rows, place in chosen if rows.kept is not None and rows.kept.texts]
        return InputSuggestions(
            found,
            ids=tuple(rows.ids[place] for rows, place in chosen),
            texts=content if opened.kind == TEXTS else tuple(kept),
            columns={name: [rows.columns[name][place] for rows, place in chosen] for name in opened.columns},
            label=opened.label,
            content=content,
        )

    def batches(
        self, inputs: Inputs, watch: Watch | None = None, *, strict: bool = False
    ) -> Iterator[tuple[Rows, np.ndarray]]:
        """Iterate over inputs and their features.

        Parameters
        ----------
        inputs : Inputs
            Result of ``opened``.
        watch : callable, optional
            Called with (name, done, total) after every batch, for a progress bar.
        strict : bool
            Whether inputs that cannot be read are an error, which lists them. By default there is a ``LeftOutWarning``
            at the end, and an error only if no input can be read.

        Yields
        ------
        rows : Rows
            A batch of inputs; ``rows.errors`` says which of them cannot be read, and why.
        X : array (readable rows, V)
            Features of the others, ``rows.readable``.
        """
        done = 0
        errors: dict[int, str] = {}
        # The caller may stop early.
        with suppress(GeneratorExit):
            for read in inputs.batches(AT_ONCE[inputs.kind]):
                rows, content = self._decoded(inputs, read)
                errors |= {done + row: error for row, error in rows.errors.items()}
                done += len(rows)
                # After an error, the rest is read but not encoded, to list all errors.
                if not (strict and errors):
                    yield rows, content if inputs.kind == FEATURES else self._encoder().encode(content)
                if watch is not None:
                    watch(inputs.name, done, inputs.total)
        if not done:
            raise InputError(f"{inputs.name} holds no inputs: pass at least one.")
        if watch is not None:
            watch(inputs.name, done, done)
        if errors:
            sentence = unreadable(errors, done, inputs.name)
            if strict or len(errors) == done:
                raise InputError(f"{sentence}; repair or remove them.")
            warnings.warn(f"{sentence}.", LeftOutWarning, stacklevel=2)

    def encoded(self, inputs: Inputs, watch: Watch | None = None, most: int | None = None) -> Encoded:
        """Labelled inputs as features; rows that have no label, or cannot be read, are left out.

        Parameters
        ----------
        inputs, watch
            As in ``batches``.
        most : int, optional
            Number of images of each class to make thumbnails of; by default all.

        Returns
        -------
        Encoded
            Features, labels and previews.
        """
        found, shown, unlabelled = [], Previews(), 0
        labels: list[str] = []
        counts: dict[str, int] = {}
        for rows, X in self.batches(inputs, watch, strict=self.strict):
            row_labels = _labels(rows, inputs)
            readable = rows.readable
            labelled = [place for place, row in enumerate(readable) if row_labels[row]]
            small = []
            for row in readable[labelled]:
                label = row_labels[row]
                counts[label] = counts.get(label, 0) + 1
                small.append(most is None or counts[label] <= most)
                labels.append(label)
            unlabelled += len(readable) - len(labelled)
            found.append(X[labelled])
            shown = shown + rows.previews(readable[labelled], small)
        if not labels:
            raise InputError(f"{inputs.name} {NO_LABEL}")
        about = inputs.about if inputs.kind == FEATURES else self._encoder().about
        return Encoded(np.concatenate(found), np.array(labels), shown, about, unlabelled)

    def opened(self, inputs: Any, labels: Sequence[Any] | None = None, columns: Columns = BY_NAME) -> Inputs:
        """Open inputs for this model.

        Parameters
        ----------
        inputs : path or list
            A file, a folder, standard input ("-"), or a list of texts, paths of images or features.
        labels, columns
            As in ``fit``.

        Returns
        -------
        Inputs
            Batches of inputs.
        """
        if not isinstance(inputs, (str, Path)):
            return given_inputs(inputs, self.kind, labels)
        if labels is not None:
            raise ParameterError("labels= is only for lists, files and folders have their own labels: leave it out.")
        if self.encoder is None:
            _check_features(Path(inputs))
        found = open_inputs(inputs, FEATURES if has_features(inputs) else self.kind, columns)
        if found.kind == FEATURES:
            self._check_extractor(found.name, found.about)
        return found

    def opened_line(self, line: str, columns: Columns = BY_NAME) -> Inputs:
        """Open what a command line names: a file, a folder, standard input, or a text itself."""
        is_file = os.path.exists(line) or is_table(Path(line)) or has_features(line)
        return self.opened([line] if self.kind == TEXTS and not is_file else line, columns=columns)

    def _labelled(self, inputs: Any, labels: Sequence[Any] | None, columns: Columns) -> Inputs:
        if labels is None and not isinstance(inputs, (str, Path)):
            raise ParameterError("A list of inputs has no labels: pass labels=, one per input.")
        return self.opened(inputs, labels, columns)

    def _check_extractor(self, name: str, about: dict[str, Any]) -> None:
        """Raise if features come from another encoder than that of this model."""
        own = self._encoder().about if self.encoder is not None and not self.about else self.about
        known, given = (header.get(EXTRACTOR) for header in (own, about))
        if known is not None and given is not None and known != given:
            raise InputError(
                f"{name} has features from {quoted(given)}, but this model needs those of {quoted(known)}: extract "
                "them with that encoder, or pass the inputs themselves."
            )

    def _encoder(self) -> Encoder:
        """The encoder; for a loaded model it must return the same features as when the model was fitted."""
        if self.encoder is None:
            raise ParameterError("This model has no encoder and takes only features: fit a model with an encoder.")
        if not self.trust and runs_code(self.encoder):
            raise InputError(
                "The encoder that the file of this model names is Python code, which runs only if you name it: pass "
                f"encoder={self.encoder!r} to load (in the shell --encoder {self.encoder}), or trust=True."
            )
        with _LOADING:
            if self._loaded is None:
                loaded = load_encoder(self.encoder, self.device)
                if self.probe and not loaded.same_as(self.probe):
                    raise InputError(
                        f"The encoder {self.encoder} returns other features than when this model was fitted: use the "
                        "same weights and version, or fit the model again."
                    )
                self._loaded, self.probe, self.encoder = loaded, loaded.probe, loaded.name
            return self._loaded

    def _decoded(self, inputs: Inputs, rows: Rows) -> tuple[Rows, Any]:
        """The rows with all errors, and of the others texts, pixels or features."""
        readable = rows.readable
        if inputs.kind == FEATURES:
            X = np.asarray(rows.content)
            width = getattr(getattr(self, "model", None), "n_features_in_", X.shape[1])
            if X.shape[1] != width:
                raise InputError(
                    f"{inputs.name} has {X.shape[1]} features, but this model needs {width}: extract them with its "
                    "encoder, or pass the inputs themselves."
                )
            finite = np.isfinite(X).all(axis=1)
            errors = dict.fromkeys(np.flatnonzero(~finite).tolist(), "its features are not all finite numbers")
            return replace(rows, errors=rows.errors | errors), X[finite]
        content, size = [rows.content[row] for row in readable], self._encoder().size
        if size is None:
            return rows, content
        squares, errors = decode(content, size)
        return replace(rows, errors=rows.errors | {int(readable[i]): error for i, error in errors.items()}), squares

    def _opened_base(self, columns: Columns) -> BaseClasses | Inputs | None:
        base = self.base
        if isinstance(base, (str, Path)) and is_bank(base):
            base = BaseClasses.load(base)
        if isinstance(base, BaseClasses):
            self._check_extractor("The bank", base.about)
        if isinstance(base, BaseClasses):
            if base.samples is None or base.names.dtype.kind in "UO":
                return base
            # Raw inputs have labels of text.
            names = np.array([as_text(name) for name in base.names.tolist()])
            return BaseClasses.from_samples(base.samples, names[base.labels], about=base.about)
        return None if base is None else self.opened(base, None, columns)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the model to a self-contained folder: classifier, bank, and previews of the samples.

        Parameters
        ----------
        path : path
            Folder of the model, such as "questions.model".
        overwrite : bool
            Whether to replace a model of that name.
        """
        self._save(Path(path), overwrite)

    def _save(self, path: Path, overwrite: bool, previous: bool = False) -> None:
        """Save the model; with `previous` the model before stays in its folder."""
        content = {
            "format": f"hotshot {WHAT}",
            "version": VERSION,
            "encoder": self.encoder,
            "kind": self.kind,
            "new_only": self.new_only,
            "about": self.about,
            "probe": list(self.probe),
            "support": self.previews().to_json(),
            "old": None if self.old is None else {"labels": self.old.y.tolist(), **self.old.shown.to_json()},
        }
        parts, base = [INPUTS], self.model.base
        with replace_folder(path, DESCRIPTION, overwrite) as folder:
            place, digest = self._place or (None, "")
            if place == real(path) and path.exists() and digest_of(path) != digest:
                raise RunError(f"{path} was changed since this model was loaded from it: load it again first.")
            write_json(folder / INPUTS, content)
            if self.old is not None:
                write_tensors(folder / OLD, {"X": self.old.X}, {})
                parts.append(OLD)
            has_bank = isinstance(base, BaseClasses) or getattr(base, "folder", None) is not None
            if has_bank:
                self._save_bank(base, folder / BANK)
                parts.append(f"{BANK}/{BANK_DESCRIPTION}")
            if previous:
                copytree(path, folder / PREVIOUS, copy_function=link_or_copy)
                rmtree(folder.joinpath(*[PREVIOUS] * (MOST_UNDONE + 1)), ignore_errors=True)
            digest = write_model(self.model, folder, parts)
        self._place = real(path), digest
        self._bank = UnloadedBase(base.fingerprint, path / BANK) if base is not None and has_bank else None

    def _save_bank(self, base: Any, place: Path) -> None:
        """Write the bank; if its files are in the folder that the model is from, link them."""
        stored = base if isinstance(base, UnloadedBase) else self._bank
        with suppress(InputError) if isinstance(base, BaseClasses) else nullcontext():
            if stored is not None and stored.load().fingerprint == base.fingerprint:
                copytree(str(stored.folder), place, copy_function=link_or_copy)
                return
        base.save(place)

    @classmethod
    @contextmanager
    def change(cls, path: str | Path, **how: Any) -> Iterator[Self]:
        """Load a model and save it after the block; other processes that change it wait.

        The model before stays inside its folder, for ``undo``.

        Parameters
        ----------
        path : path
            Folder of the model.
        **how
            As in ``load``.

        Yields
        ------
        InputClassifier
            The model.

        Examples
        --------
        Add samples to a saved model::

            with InputClassifier.change("questions.model") as model:
                model.add("more.csv")
        """
        with one_at_a_time(path):
            model = cls.load(path, **how)
            yield model
            model._save(Path(path), overwrite=True, previous=True)

    @classmethod
    def undo(cls, path: str | Path) -> Self:
        """Put back the model that was in a folder before its last ``change``.

        Parameters
        ----------
        path : path
            Folder of the model.

        Returns
        -------
        InputClassifier
            The model as it was.
        """
        path = Path(path)
        with one_at_a_time(path):
            read_json_document(path, INPUTS, WHAT, "fit a model with hotshot fit", VERSION)
            if not (path / PREVIOUS).is_dir():
                raise InputError(f"{path} holds no earlier model: nothing was added or removed, or all is undone.")
            cls.load(path / PREVIOUS)
            with replace_folder(path, DESCRIPTION, overwrite=True) as folder:
                copytree(path / PREVIOUS, folder, copy_function=link_or_copy, dirs_exist_ok=True)
            return cls.load(path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu", encoder: str | None = None, trust: bool = False) -> Self:
        """Load a saved model; its bank is only read when classes are added or removed.

        Parameters
        ----------
        path : path
            Folder of the model.
        device : str
            PyTorch device of the encoder, such as "cpu" or "cuda".
        encoder : str, optional
            Name of its encoder, if that has moved, or is Python code: code that only the file names is not run.
        trust : bool
            Whether to run Python code that the file names as its encoder.

        Returns
        -------
        InputClassifier
            The model.
        """
        return read_folder(Path(path), partial(cls._read, Path(path), device, encoder, trust))

    @classmethod
    def _read(cls, folder: Path, device: str, encoder: str | None, trust: bool) -> Self:
        digest, model = digest_of(folder), HOTClassifier.load(folder)
        content = read_json_document(folder, INPUTS, WHAT, "fit a model with hotshot fit", VERSION)
        if encoder is not None and content.get("encoder") is None:
            raise ParameterError(f"{folder} takes features and has no encoder: leave encoder (--encoder) out.")
        with refuse_damage(folder, WHAT):
            found = cls(new_only=bool(content["new_only"]), device=device)
            found.encoder, found.trust = encoder or content["encoder"], trust or encoder is not None
            found.model, found.kind = model, content["kind"]
            found.about, found.probe = dict(content["about"]), tuple(map(float, content["probe"]))
            if found.kind not in AT_ONCE or not isinstance(found.encoder, (str, type(None))):
                raise ValueError("its kind of inputs or its encoder is unknown")
            found.support = Previews.from_json(content["support"], len(model.support_labels_))
            if content["old"] is not None:
                X, y = np.array(map_tensors(folder / OLD).tensors["X"]), np.array(content["old"]["labels"])
                found.old = Examples(X, y, Previews.from_json(content["old"], len(y)))
                if X.shape != (len(y), model.n_features_in_) or not np.isfinite(X).all():
                    raise ValueError("its old samples are not valid features")
            if digest_of(folder) != digest:
                raise ValueError("it was replaced")
        found._place = real(folder), digest
        if isinstance(model.base, UnloadedBase) and is_bank(folder / BANK):
            found._bank = model.base = UnloadedBase(model.base.fingerprint, folder / BANK)
        return found


def has_features(path: str | Path) -> bool:
    """Whether a file holds features, by its suffix; tables hold texts."""
    return by_suffix(Path(path)) is not None and Path(path).suffix.lower() not in SUFFIXES


def _labels(rows: Rows, inputs: Inputs) -> list[str]:
    """Labels of rows; raise if they have none."""
    if rows.labels is None:
        by_folder = inputs.kind == IMAGES and inputs.columns == (PATH,)
        remedy = "put images into one folder per class" if by_folder else f"name it with {naming('label')}"
        raise InputError(f"{inputs.name} has no {'labels' if by_folder else 'column of labels'}: {remedy}.")
    return rows.labels


def _label_counts(inputs: Inputs) -> Counter[str]:
    """How often each label occurs, before anything is encoded; empty if that means to read all or is impossible."""
    found: Counter[str] = Counter()
    if inputs.kind == FEATURES or inputs.name == STDIN_NAME:
        return found
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        for rows in inputs.batches(AT_ONCE[FEATURES]):
            found.update(label for label in _labels(rows, inputs) if label)
    if not found:
        raise InputError(f"{inputs.name} {NO_LABEL}")
    return found


def _check_few(counts: Sequence[int] | np.ndarray, few: int, name: str) -> None:
    """Raise unless some classes have at most so many samples, and some more."""
    are_new = {bool(n <= few) for n in counts}
    if len(are_new) == 1:
        raise InputError(
            f"{name} has {'only classes' if are_new == {True} else 'no class'} with at most {few} samples, which count "
            "as new: change few (in the shell --few), or pass old and new classes in two files."
        )


def _check_features(path: Path) -> None:
    """Raise if a model without an encoder gets texts or images."""
    columns = set(open_table(path).columns) if is_table(path) else set()
    # Texts may stand beside features, which are in one column, or in numbered ones.
    has_numbers = FEATURES in columns or sum(name[-1:].isdigit() for name in columns) > 1
    is_text = columns & set(TEXT_NAMES) and not has_numbers
    if is_text or is_image(path.name) or (path.is_dir() and not is_bank(path)):
        raise ParameterError(
            f"{path} holds no features: pass encoder= (in the shell --encoder), such as minilm for texts or "
            "efficientnet-lite0 for images."
        )


def _of_one_class(images: Inputs, path: Any) -> Inputs:
    """Images that lie in a folder themselves, and not in folders in it, get its name as label."""

    def batches(size: int) -> Iterator[Rows]:
        for rows in images.batches(size):
            yield replace(rows, labels=[Path(path).resolve().name] * len(rows)) if rows.labels is None else rows

    is_folder = images.kind == IMAGES and isinstance(path, (str, Path)) and os.path.isdir(path)
    return replace(images, batches=batches) if is_folder else images
