"""Merge banks: one bank with the samples of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank.classes import EXTRACTOR, SEEN, TRANSFORM, BaseClasses
from hotshot.bank.space import ROWS_AT_ONCE
from hotshot.errors import InputError, ParameterError


def merge_banks(sources: Sequence[str | Path], path: str | Path, *, overwrite: bool = False) -> BaseClasses:
    """Write a bank with the samples of several banks to the folder ``path``, as if made from all samples at once.

    A class of several banks gets the samples of all. Settings chosen on the parts are not kept: they are chosen again
    on the merged bank.
    """
    if len(sources) < 2:
        raise ParameterError(f"A merge needs two banks or more, got {len(sources)}: name the others too.")
    banks = [BaseClasses.load(source) for source in sources]
    _check_mergeable(sources, banks)
    dtype = np.result_type(*(bank.dtype for bank in banks))

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for bank in banks:
            samples = bank.samples
            assert samples is not None
            for rows in slices(len(samples), ROWS_AT_ONCE):
                yield samples[rows].astype(dtype), bank.names[bank.labels[rows]]

    about = _about(banks)
    about["source"] = [
        {"name": Path(s).name, "fingerprint": b.fingerprint} for s, b in zip(sources, banks, strict=True)
    ]
    return BaseClasses.from_batches(batches(), path, about=about, overwrite=overwrite)


def _check_mergeable(sources: Sequence[str | Path], banks: Sequence[BaseClasses]) -> None:
    """Raise unless all banks have samples, of the same extractor and width, and no two banks the same samples."""
    for source, bank in zip(sources, banks, strict=True):
        if bank.samples is None:
            raise InputError(
                f"{source} keeps no samples, which a merge needs: merge banks with samples, then make the result "
                "compact."
            )
    for (source, one), (other, two) in combinations(zip(sources, banks, strict=True), 2):
        origins = [(key, one.about.get(key), two.about.get(key)) for key in (EXTRACTOR, TRANSFORM)]
        for key, own, its in [("features", one.n_features, two.n_features), *origins]:
            if own is not None and its is not None and own != its:
                raise InputError(
                    f"{source} and {other} differ in {key}, {own} and {its}: extract all features with the same model."
                )
        if one.fingerprint == two.fingerprint:
            raise InputError(f"{source} and {other} hold the same samples: name each bank once.")


def _about(banks: Sequence[BaseClasses]) -> dict[str, Any]:
    """Entries of ``about`` that all banks share, and the extractor and transform even if only some banks have them."""
    first, *_ = abouts = [bank.about for bank in banks]
    common = {key: value for key, value in first.items() if all(one.get(key) == value for one in abouts)}
    common |= {key: one[key] for one in abouts for key in (EXTRACTOR, TRANSFORM) if one.get(key) is not None}
    # Classes seen in training are too easy, whatever they are merged with.
    return common | ({SEEN: True} if any(bank.seen_in_training for bank in banks) else {})
