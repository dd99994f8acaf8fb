"""`hotshot export`: a fitted classifier as one file that works without hotshot."""

from pathlib import Path
from typing import Annotated

from hotshot.cli import options
from hotshot.cli.options import argument
from hotshot.formatting import printable, readable_size


def export(
    model: options.Model, out: Annotated[Path, argument("Output file, .onnx.", "OUT")], force: options.Force = False
) -> None:
    """Export a model as ONNX, to use it without hotshot."""
    from hotshot.classifiers import HOTClassifier
    from hotshot.classifiers.export import export_model

    if out.is_file():
        options.refuse_existing(out, force, model)
    loaded = HOTClassifier.load(model)
    export_model(loaded, out, overwrite=force)
    scores = "with outlier scores" if loaded.known_ is not None else "without outlier scores"
    counts = f"{len(loaded.classes_)} classes, {loaded.n_features_in_} features, {scores}"
    print(printable(f"Wrote {out}: {counts}, {readable_size(out.stat().st_size)}."))
