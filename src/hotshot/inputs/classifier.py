"""A classifier of raw inputs that can be saved: an encoder, a bank of old classes, and H-OT."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hotshot.arrays import as_text
from hotshot.bank import BaseClasses, is_bank
from hotshot.classifiers.classifier import assign, check_names, snapshot
from hotshot.classifiers.hot import HOTClassifier
from hotshot.classifiers.saving import UnloadedBase
from hotshot.errors import InputError, LeftOutWarning, ParameterError
from hotshot.files import Samples
from hotshot.files.atomic import one_at_a_time
from hotshot.files.objects import read_folder
from hotshot.files.samples import ID
from hotshot.files.tables import STDIN_NAME
from hotshot.formatting import count, did_you_mean, quoted
from hotshot.inputs.answers import InputSuggestions
from hotshot.inputs.encoding import AT_ONCE, InputEncoder, Watch
from hotshot.inputs.explaining import InputExplanation, explain_inputs
from hotshot.inputs.inputs import BY_NAME, FEATURES, TEXTS, Columns, Inputs, is_path, of_one_class, open_inputs
from hotshot.inputs.samples import distinct, joined, names_of, readable, with_new_ids
from hotshot.inputs.saving import previous_model, put_back, read_model, save_model

if TYPE_CHECKING:
    from hotshot.classifiers.explanation import Explanation

# If old and new classes are in one file, those with at most so many samples are new.
FEW = 10


class InputClassifier:
    """Classify texts, images or features into old classes, new classes or none of these.

    Inputs are a path (a file, a folder, or "-" for standard input) or a list or column of texts, paths of images or
    features. ``columns=Columns(text, label, id)`` names the columns of a table, which are otherwise found by name, and
    ``watch(name, done, total)`` is called after every batch. Inputs that cannot be read are an ``InputError``, which
    lists them, where each input needs an answer; ``fit``, ``add``, ``explain`` and ``suggest`` leave them out with a
    ``LeftOutWarning``.

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
        Whether labelled inputs that cannot be read, such as an empty text or a corrupt image, are an error.
    device : str
        PyTorch device, such as "cpu" or "cuda".
    **settings
        Parameters of ``HOTClassifier``.

    Attributes
    ----------
    model : HOTClassifier
        The classifier of the features.
    support : Samples
        The samples of the new classes, with ids, texts and thumbnails.

    See Also
    --------
    HOTClassifier : The classifier of features; ``predict``, ``predict_proba``, ``outlier_score``, ``explain`` and
        ``suggest`` have its parameters and results.
    hotshot.encoders.load_encoder : Encoders by name.

    Examples
    --------
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
        self.encoding, self.base, self.new_only = InputEncoder(encoder, device), base, new_only
        self.strict, self.settings = strict, settings
        # What feature files state about features of this model.
        self.about: dict[str, Any] = {}
        # Rows of the last fit that had no label.
        self.unlabelled = 0
        # Ids, texts and thumbnails of the support samples; and the samples of old classes, to be shown.
        self.shown: Mapping[str, Sequence[Any]] = {}
        self.old: Samples | None = None
        # Where the model was loaded from or saved to, the digest of its files then, and the bank in that folder.
        self.place: tuple[Path, str] | None = None
        self.bank_in_place: UnloadedBase | None = None

    def __repr__(self) -> str:
        if not hasattr(self, "model"):
            return f"InputClassifier({self.encoder!r}, not fitted)"
        old, new = len(self.classes) - len(self.new_classes), count(len(self.new_classes), "new class", "new classes")
        samples = count(len(self.model.support_labels_), "sample")
        return f"InputClassifier({self.encoder!r}, {old} old classes, {new} with {samples})"

    @property
    def encoder(self) -> str | None:
        """Name of the encoder."""
        return self.encoding.name

    @property
    def classes(self) -> np.ndarray:
        """All classes that can be predicted."""
        return self.model.classes_

    @property
    def new_classes(self) -> np.ndarray:
        """The classes that were learned from a few samples."""
        return np.unique(self.model.support_labels_)

    @property
    def support(self) -> Samples:
        """The samples of new classes; those that were added to ``model`` itself have a number as id."""
        labels, columns = self.model.support_labels_, self.shown
        n_shown = len(columns[ID])
        if n_shown < len(labels):
            columns = {ID: [*columns[ID], *(f"sample {i + 1}" for i in range(n_shown, len(labels)))]}
        return Samples(self.model.support_, labels, columns, self.about)

    def contents(self) -> dict[str, list[str] | int]:
        """What the model holds: for each new class the texts or ids of its samples, for each old one how many."""
        support, outliers = self.support, self.model.outliers_
        sizes = [0] * len(self.classes) if outliers is None else outliers.known.sizes.astype(int).tolist()
        contents: dict[str, Any] = dict(zip(map(str, self.classes.tolist()), sizes, strict=True))
        new: dict[str, list[str]] = {str(name): [] for name in self.new_classes}
        for label, name in zip(support.y.tolist(), support.texts or support.ids, strict=True):
            new[str(label)].append(name)
        return {**new, **{name: size for name, size in contents.items() if name not in new}}

    # --- learning

    def fit(
        self,
        support: Any,
        labels: Sequence[Any] | None = None,
        *,
        columns: Columns = BY_NAME,
        watch: Watch | None = None,
    ) -> Self:
        """Learn new classes from a few labelled inputs; ``labels`` are those of a list."""
        # What is quickly found comes first: openings, labels and names, then all of the support, and the base last.
        fitted = copy(self)
        new, old = fitted._labelled(support, labels, columns), fitted._opened_base(columns)
        new_names = [*_label_counts(new)]
        old_names = [*_label_counts(old)] if isinstance(old, Inputs) else [] if old is None else old.names.tolist()
        fitted._check_names(old_names, new_names)
        samples, fitted.unlabelled = fitted.encoding.labelled(new, watch, strict=self.strict)
        fitted._check_names(old_names, samples.y)
        stored = fitted.encoding.labelled(old, watch, strict=self.strict)[0] if isinstance(old, Inputs) else old
        return self._fit(fitted, stored, samples)

    def fit_together(
        self, path: str | Path, few: int = FEW, columns: Columns = BY_NAME, watch: Watch | None = None
    ) -> Self:
        """Learn old and new classes from one file or folder; classes with at most ``few`` samples are new."""
        if self.base is not None:
            raise ParameterError("fit_together takes the old classes from the file: leave base out.")
        fitted, opened = copy(self), self.opened(path, None, columns)
        _check_few([*_label_counts(opened).values()], few, opened.name)
        both, fitted.unlabelled = fitted.encoding.labelled(opened, watch, strict=self.strict)
        _, members, counts = np.unique(both.y, return_inverse=True, return_counts=True)
        _check_few(counts, few, opened.name)
        is_new = (counts <= few)[members]
        return self._fit(fitted, both[~is_new], both[is_new])

    def _fit(self, fitted: Self, old: Samples | BaseClasses | None, new: Samples) -> Self:
        """Fit `fitted` to old classes, whose samples are shown in explanations, and take its state."""
        new = distinct(new, [], self.strict)
        base = BaseClasses.from_samples(old.X, old.y, about=old.about) if isinstance(old, Samples) else old
        include = base is not None and not self.new_only
        fitted.model = HOTClassifier(base, include_base=include, **self.settings).fit(new.X, new.y)
        fitted.old = old if isinstance(old, Samples) else None
        fitted.shown, fitted.about = new.columns, new.about
        fitted.place = fitted.bank_in_place = None
        assign(self, fitted)
        return self

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
        """
        grown, support, old = copy(self), self.support, [] if self.old is None else [self.old]
        given = of_one_class(self._labelled(inputs, labels, columns), inputs)
        width = self.model.n_features_in_
        encoded, grown.unlabelled = self.encoding.labelled(given, watch, strict=self.strict, width=width)
        new = distinct(encoded, [support, *old], self.strict)
        is_old = np.isin(new.y, np.setdiff1d(self.classes, self.new_classes))
        grown.model = copy(self.model).add(new.X, new.y)
        grown.shown = joined([support, with_new_ids(new[~is_old], support.ids)]).columns
        if is_old.any():
            grown.old = joined([*old, new[is_old]])
        assign(self, grown)
        return self

    def remove(self, names: Sequence[str] = (), *, samples: Sequence[str] = ()) -> Self:
        """Remove new classes by their labels, or single samples of them by their ids or texts.

        The result is that of a fresh fit without them.
        """
        grown, model, support = copy(self), copy(self.model), self.support
        stays, texts = ~np.isin(support.y, names), support.texts or [""] * len(support)
        for name in samples:
            places = [i for i, both in enumerate(zip(support.ids, texts, strict=True)) if name and name in both]
            if len(places) != 1:
                which = "several samples of this model" if places else "no sample of this model"
                close = did_you_mean(name, [*support.ids, *filter(None, texts)])
                raise InputError(f"{quoted(name)} is the name of {which}: pass the id or text of one.{close}")
            stays[places] = False
        for name in names:
            if name not in self.new_classes:
                close = did_you_mean(str(name), list(map(str, self.new_classes)))
                raise InputError(f"{quoted(name)} is not a new class of this model: name one of those.{close}")
        if not stays.any():
            raise InputError("No new class would be left: remove fewer classes or samples.")
        left = support[stays]
        grown.model, grown.shown = model.learn_again(left.X, left.y, model.base), left.columns
        assign(self, grown)
        return self

    def _check_names(self, old: Sequence[Any], new: Sequence[Any]) -> None:
        if len(old) and len(new) and not self.new_only:
            check_names(np.array(old), np.array(new))

    # --- answers

    def predict(
        self, inputs: Any, *, reject: float | None = None, unknown: Any = None, batch: bool = False
    ) -> np.ndarray:
        """Predict the most probable class of each input; see ``HOTClassifier.predict`` and ``predict_batch``."""
        predict = self.model.predict_batch if batch else self.model.predict
        return predict(self.features(inputs), reject=reject, unknown=unknown)

    def predict_proba(self, inputs: Any, *, batch: bool = False) -> np.ndarray:
        """Probability of each class (inputs, classes), in the order of ``classes``."""
        proba = self.model.predict_proba_batch if batch else self.model.predict_proba
        return proba(self.features(inputs))

    def outlier_score(self, inputs: Any) -> np.ndarray:
        """Outlier score of each input: the larger, the less likely it belongs to any class."""
        return self.model.outlier_score(self.features(inputs))

    def features(self, inputs: Any) -> np.ndarray:
        """Features of inputs (inputs, V)."""
        return np.concatenate([X for _, _, X in self.batches(self.opened(inputs), strict=True)])

    def explain(self, inputs: Any, most: int | None = None, *, reject: float | None = None) -> InputExplanation:
        """Explain the predictions for the first ``most`` inputs; samples are shown by their texts or ids.

        The result can be printed, and converted with ``to_html(title)``; ``in_words(numbers=True)`` adds the parts of
        the difference between the two logits.
        """
        opened = self.opened(inputs)
        parts: list[Samples] = []
        for rows, content, X in self.batches(opened):
            parts.append(Samples(X, columns=opened.shown(rows[readable(rows)], content)))
            if most is not None and sum(map(len, parts)) >= most:
                break
        model = snapshot(self)
        return explain_inputs(model.model, joined(parts)[:most], model.support, model.old, reject)

    def loans(self) -> Explanation:
        """How much each old class lends to the new ones: their transfer weights, which can be printed."""
        return self.model.explain(names=names_of(self.support))

    def suggest(self, inputs: Any, n: int = 5, *, watch: Watch | None = None) -> InputSuggestions:
        """Suggest which ``n`` unlabelled inputs to label next; see ``HOTClassifier.suggest``.

        The result can be printed; ``suggestions`` are those of ``HOTClassifier`` and ``samples`` the suggested inputs.
        """
        opened = self.opened(inputs)
        parts = [(rows, X) for rows, _, X in self.batches(opened, watch)]
        pool = joined([rows for rows, _ in parts])
        suggestions = self.model.suggest(np.concatenate([X for _, X in parts]), n)
        # Suggestions are numbers of readable inputs; users count all of them.
        numbers = readable(pool)[suggestions.rows]
        items = [replace(item, index=number) for item, number in zip(suggestions, numbers.tolist(), strict=True)]
        return InputSuggestions(replace(suggestions, items=tuple(items)), opened, pool[numbers])

    # --- inputs as features

    def opened(self, inputs: Any, labels: Sequence[Any] | None = None, columns: Columns = BY_NAME) -> Inputs:
        """Open inputs for this model, in batches; ``labels`` are those of a list. What is open stays as it is."""
        if isinstance(inputs, Inputs):
            return inputs
        opened = open_inputs(inputs, self.encoding.kind, columns, labels)
        if opened.kind == FEATURES:
            self.encoding.check_same(opened.name, opened.about, self.about)
        return opened

    def opened_line(self, line: str, columns: Columns = BY_NAME) -> Inputs:
        """Open what a command line names: a file, a folder, standard input, or a text itself."""
        return self.opened([line] if self.encoding.kind == TEXTS and not is_path(line) else line, columns=columns)

    def batches(
        self, inputs: Inputs, watch: Watch | None = None, *, strict: bool = False
    ) -> Iterator[tuple[Samples, Any, np.ndarray]]:
        """Batches of inputs from ``opened``; of the rows that can be read, texts or pixels, and features."""
        return self.encoding.batches(inputs, watch, strict=strict, width=self.model.n_features_in_)

    def _labelled(self, inputs: Any, labels: Sequence[Any] | None, columns: Columns) -> Inputs:
        if labels is None and not isinstance(inputs, (str, Path)):
            raise ParameterError("A list of inputs has no labels: pass labels=, one per input.")
        return self.opened(inputs, labels, columns)

    def _opened_base(self, columns: Columns) -> BaseClasses | Inputs | None:
        base = self.base
        if isinstance(base, (str, Path)):
            if not is_bank(base):
                return self.opened(base, None, columns)
            base = BaseClasses.load(base)
        if base is None:
            return None
        self.encoding.check_same("The bank", base.about, self.about)
        if base.samples is None or base.names.dtype.kind in "UO":
            return base
        # Raw inputs have labels of text.
        names = np.array([as_text(name) for name in base.names.tolist()])
        return BaseClasses.from_samples(base.samples, names[base.labels], about=base.about)

    # --- models in folders

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the model to a self-contained folder, such as "questions.model"."""
        save_model(self, Path(path), overwrite)

    @classmethod
    @contextmanager
    def change(cls, path: str | Path, **how: Any) -> Iterator[Self]:
        """Load a model, as ``load``, and save it after the block; other processes that change it wait.

        The model before stays inside its folder, for ``undo``.

        Examples
        --------
        Add samples to a saved model::

            with InputClassifier.change("questions.model") as model:
                model.add("more.csv")
        """
        with one_at_a_time(path):
            model = cls.load(path, **how)
            yield model
            save_model(model, Path(path), overwrite=True, previous=True)

    @classmethod
    def undo(cls, path: str | Path) -> Self:
        """Put back the model that was in a folder before its last ``change``, and return it."""
        path = Path(path)
        with one_at_a_time(path):
            cls.load(previous_model(path))
            put_back(path)
            return cls.load(path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu", encoder: str | None = None, trust: bool = False) -> Self:
        """Load a saved model; its bank is only read when classes are added or removed.

        ``encoder`` is the name of its encoder, if that has moved, or is Python code: code that only the file names is
        not run, except with ``trust=True``.
        """
        return read_folder(Path(path), partial(read_model, cls, Path(path), device, encoder, trust))


def _label_counts(inputs: Inputs) -> Counter[str]:
    """How often each label occurs, before anything is encoded; empty where nothing is encoded or can be read twice."""
    counts: Counter[str] = Counter()
    if inputs.kind == FEATURES or inputs.name == STDIN_NAME:
        return counts
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        for batch in inputs.batches(AT_ONCE[FEATURES]):
            counts.update(filter(None, inputs.labels(batch)))
    inputs.check_labelled(counts)
    return counts


def _check_few(counts: Sequence[int] | np.ndarray, few: int, name: str) -> None:
    """Raise unless some classes have at most so many samples, and some more."""
    are_new = {bool(n <= few) for n in counts}
    if len(are_new) == 1:
        raise InputError(
            f"{name} has {'only classes' if are_new == {True} else 'no class'} with at most {few} samples, which count "
            "as new: change few (in the shell --few), or pass old and new classes in two files."
        )
