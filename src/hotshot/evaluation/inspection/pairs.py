"""Whether two files fit each other: the same features, other classes, other samples."""

from __future__ import annotations

from collections.abc import Iterator

from hotshot.evaluation.inspection.duplicates import find_shared
from hotshot.evaluation.inspection.findings import FAULT, NOTE, WARNING, Row
from hotshot.evaluation.inspection.measures import Measures
from hotshot.evaluation.inspection.words import count, number, shown, similar_names

# Factor between the median norms of two files beyond which they were hardly made the same way.
USUAL_RATIO = 3.0
# What the headers of two files that are used together must agree in.
MUST_AGREE = ("extractor", "transform")


def pair_findings(base: Measures, novel: Measures) -> Iterator[Row]:
    """Findings about a file of base classes and a file of novel classes together."""
    if base.width != novel.width:
        yield (
            FAULT,
            "width-mismatch",
            f"The base file has {count(base.width, 'feature')} and the novel file {novel.width:,}: extract both with "
            "the same model.",
        )
    else:
        yield from _features(base, novel)
    yield from _classes(base, novel)
    yield from _about(base, novel)


def _features(base: Measures, novel: Measures) -> Iterator[Row]:
    n_shared, example = find_shared(base.prints, novel.prints)
    if example is not None:
        which = f"Row {example[1]} of the novel file is row {example[0]} of the base file"
        if n_shared > 1:
            which = (
                f"{n_shared:,} rows of the novel file are in the base file too, such as row {example[1]}, which is "
                f"row {example[0]} there"
            )
        yield (
            FAULT,
            "row-overlap",
            f"{which}: remove {'it' if n_shared == 1 else 'them'} from one file, or results will be too good.",
        )
    if base.dtype != novel.dtype:
        yield (
            NOTE,
            "dtype-mismatch",
            f"The base file is {base.dtype} and the novel file {novel.dtype}, so a sample in both may differ by "
            "rounding and not be noticed: store both the same way to be sure.",
        )
    if (base.negatives == 0) != (novel.negatives == 0):
        plain, signed = ("base", "novel") if novel.negatives else ("novel", "base")
        yield (
            WARNING,
            "power-mismatch",
            f"The {signed} file has negative entries and the {plain} file has none, so power 'auto' is 1 for both: "
            "check that both were extracted the same way.",
        )
    if base.norms is None or novel.norms is None or not base.norms.median or not novel.norms.median:
        return
    ratio = novel.norms.median / base.norms.median
    if base.norms.unit != novel.norms.unit or not 1 / USUAL_RATIO <= ratio <= USUAL_RATIO:
        yield (
            WARNING,
            "scale-mismatch",
            f"The median norm is {number(base.norms.median)} in the base file and {number(novel.norms.median)} in "
            "the novel file: normalise both the same way.",
        )


def _classes(base: Measures, novel: Measures) -> Iterator[Row]:
    # As `evaluate` compares them, a number and the same number as text are one name.
    known = {str(name) for name in base.names}
    shared = [shown(name) for name in novel.names if str(name) in known]
    if shared:
        alone = len(shared) == 1
        which = f"Class '{shared[0]}' is" if alone else f"{len(shared):,} classes, such as '{shared[0]}', are"
        remedy = f"remove {'it' if alone else 'them'} from one file"
        if "text" not in (base.label_kind, novel.label_kind):
            remedy += ", or give names to classes that only share a number"
        yield (
            FAULT,
            "class-overlap",
            f"{which} in both files, where novel classes must not be base classes: {remedy}.",
        )
    similar = similar_names(base.names, novel.names)
    if similar:
        first, second = (shown(name) for name in similar[0])
        yield (
            WARNING,
            "similar-classes",
            f"{count(len(similar), 'novel class has', 'novel classes have')} a name that differs from a base class "
            f"only in case, spaces, hyphens or underscores, such as '{second}' from '{first}': remove from one file "
            "what is the same class.",
        )


def _about(base: Measures, novel: Measures) -> Iterator[Row]:
    for key in MUST_AGREE:
        own, other = base.about.get(key), novel.about.get(key)
        if own is not None and other is not None and own != other:
            yield (
                WARNING,
                f"{key}-mismatch",
                f"The base file says its {key} is '{shown(own)}' and the novel file says '{shown(other)}': use "
                "features of one kind.",
            )
