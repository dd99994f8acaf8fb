"""From inputs to features, by an encoder that a model remembers by its name."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.bank.bank import EXTRACTOR
from hotshot.errors import InputError, LeftOutWarning, ParameterError
from hotshot.files import Samples
from hotshot.formatting import quoted
from hotshot.inputs.inputs import FEATURES, IMAGES, TEXTS, Inputs, decoded
from hotshot.inputs.samples import joined, readable, unreadable, with_few_thumbnails

if TYPE_CHECKING:
    from hotshot.encoders import Encoder

# Inputs per batch.
AT_ONCE = {TEXTS: 256, IMAGES: 64, FEATURES: 2**14}
# Threads load encoders one after another.
_LOADING = Lock()

Watch = Callable[[str, int, int | None], None]


class InputEncoder:
    """Features of inputs of one kind: by an encoder with a name, or the inputs themselves.

    It is loaded at its first use, and must then return the features that the numbers in `probe` were computed from.
    Unless a user named it (`trust`), it must not be code.
    """

    def __init__(
        self, name: str | None, device: str, *, kind: str | None = None, probe: Sequence[float] = (), trust: bool = True
    ) -> None:
        self.name, self.device, self.probe, self.trust = name, device, tuple(map(float, probe)), trust
        self._loaded: Encoder | None = None
        if kind is None and name is not None:
            from hotshot.encoders import encoder_kind

            kind = encoder_kind(name)
        self.kind = kind or FEATURES

    def load(self) -> Encoder:
        """The encoder; for a loaded model it must return the same features as when the model was fitted."""
        if self.name is None:
            raise ParameterError("This model has no encoder and takes only features: fit a model with an encoder.")
        from hotshot.encoders import load_encoder, runs_code

        if not self.trust and runs_code(self.name):
            raise InputError(
                "The encoder that the file of this model names is Python code, which runs only if you name it: pass "
                f"encoder={self.name!r} to load (in the shell --encoder {self.name}), or trust=True."
            )
        with _LOADING:
            if self._loaded is None:
                loaded = load_encoder(self.name, self.device)
                if self.probe and not loaded.same_as(self.probe):
                    raise InputError(
                        f"The encoder {self.name} returns other features than when this model was fitted: use the "
                        "same weights and version, or fit the model again."
                    )
                self._loaded, self.probe, self.name = loaded, loaded.probe, loaded.name
            return self._loaded

    def batches(
        self, inputs: Inputs, watch: Watch | None = None, *, strict: bool = False, width: int | None = None
    ) -> Iterator[tuple[Samples, Any, np.ndarray]]:
        """Batches of inputs; of the rows that can be read, texts or pixels, and features, of this width if given.

        `batch.errors` says why others cannot. There is a `LeftOutWarning` at the end, and an error only if no input can
        be read, or if `strict`.
        """
        done = 0
        errors: dict[int, str] = {}
        # The caller may stop early.
        with suppress(GeneratorExit):
            for given in inputs.batches(AT_ONCE[inputs.kind]):
                batch, content = self._decoded(inputs, given, width)
                errors |= {done + row: error for row, error in batch.errors.items()}
                done += len(batch)
                # After an error, the rest is read but not encoded, to list all errors.
                if not (strict and errors):
                    yield batch, content, content if inputs.kind == FEATURES else self.load().encode(content)
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

    def labelled(
        self, inputs: Inputs, watch: Watch | None = None, *, strict: bool = False, width: int | None = None
    ) -> tuple[Samples, int]:
        """Features of labelled inputs with what is shown of them, and how many rows had no label.

        Those rows, and rows that cannot be read, are left out.
        """
        parts = []
        counts: Counter[str] = Counter()
        for batch, content, X in self.batches(inputs, watch, strict=strict, width=width):
            rows = batch[readable(batch)]
            parts.append(with_few_thumbnails(Samples(X, inputs.labels(rows), inputs.shown(rows, content)), counts))
        samples = joined(parts)
        inputs.check_labelled(samples.y)
        about = inputs.about if inputs.kind == FEATURES else self.load().about
        has_label = np.array([bool(label) for label in samples.y])
        return replace(samples, y=np.array(samples.y), about=about)[has_label], int((~has_label).sum())

    def _decoded(self, inputs: Inputs, batch: Samples, width: int | None) -> tuple[Samples, Any]:
        """The batch with all its errors, and of the other rows texts, pixels or features."""
        rows = readable(batch)
        if inputs.kind == FEATURES:
            if batch.X.shape[1] != (width or batch.X.shape[1]):
                raise InputError(
                    f"{inputs.name} has {batch.X.shape[1]} features, but this model needs {width}: extract them with "
                    "its encoder, or pass the inputs themselves."
                )
            finite = np.isfinite(batch.X).all(axis=1)
            errors = dict.fromkeys(np.flatnonzero(~finite).tolist(), "its features are not all finite numbers")
            return replace(batch, errors={**batch.errors, **errors}), batch.X[finite]
        content, size = [batch.X[row] for row in rows], self.load().size
        if size is None:
            return batch, content
        pixels, wrong = decoded(content, size)
        return replace(batch, errors={**batch.errors, **{int(rows[i]): why for i, why in wrong.items()}}), pixels

    def check_same(self, name: str, about: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        """Raise if features are from another extractor than expected, by default this encoder."""
        if self.name is not None and not expected:
            expected = self.load().about
        needed, given = (header.get(EXTRACTOR) for header in (expected, about))
        if needed is not None and given is not None and needed != given:
            raise InputError(
                f"{name} has features from {quoted(given)}, but this model needs those of {quoted(needed)}: extract "
                "them with that encoder, or pass the inputs themselves."
            )
