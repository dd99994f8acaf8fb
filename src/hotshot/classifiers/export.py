r"""Export a fitted classifier to one file that works without hotshot: an ONNX graph.

The probabilities of a sample x are

.. math::
    z = \frac{R (x^\lambda - c)}{\lVert R (x^\lambda - c) \rVert}, \quad p = \mathrm{softmax}(W z + b)

and, for models with base classes, its outlier score is the log-ratio of ``hotshot.model.two_covariances``, written as a
polynomial in the deviations u from the mean of the base classes, so that large numbers do not cancel:

.. math::
    u = A z - a, \quad \mathrm{score} = -\max_k\, (\gamma_k + \beta_k \cdot u + \alpha_k \cdot u^2)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hotshot.bank.space import FeatureTransform
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.confidence import LEVELS
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files.atomic import replace_file
from hotshot.files.objects import to_json
from hotshot.model.two_covariances import KnownClasses, predictive
from hotshot.version import __version__

SUFFIX = ".onnx"
FORMAT, VERSION = "hotshot answers", 1
# The oldest versions that suffice, so that most runtimes can read the file, onnxruntime from 1.17.
OPSET, IR_VERSION = 13, 8
# Below the norm of any sample, except one equal to the centre, which stays zero.
TINY = 1e-30


def export_model(model: CalibratedClassifier, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted classifier to a file that works without hotshot.

    Its results agree with ``predict_proba`` and ``outlier_score`` to single precision. Samples that these refuse, such
    as negative features with the power 0.5, give NaN.

    ``model`` is a fitted ``HOTClassifier`` or ``FreeLunchClassifier``. The name of the file, an ONNX graph, ends in
    ".onnx"; a file of that name is replaced only with ``overwrite``.

    Examples
    --------
    A fitted model as an ONNX graph::

        export_model(model, "intents.onnx")
    """
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise ParameterError(f"{path} must end in {SUFFIX}, got {path.suffix!r}: rename it.")
    if not isinstance(model, CalibratedClassifier):
        raise ParameterError(
            f"{type(model).__name__} cannot be exported: fit HOTClassifier or FreeLunchClassifier, which have a linear "
            "head."
        )
    check_is_fitted(model)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder: name a file.")
    if os.path.exists(path) and not overwrite:
        raise InputError(f"{path} exists: overwrite it, or name another.")
    graph = _onnx(model)
    with replace_file(path) as file:
        file.write(graph)


def _about(model: CalibratedClassifier) -> dict[str, Any]:
    """Description of the model: classes, versions, extractor, and the outlier scores that reject samples."""
    outliers = model.outliers_
    thresholds = None if outliers is None else outliers.thresholds
    to_json(model.classes_, "classes_", {})  # Raises if JSON cannot represent them.
    return {
        "format": FORMAT,
        "version": VERSION,
        "hotshot": __version__,
        "extractor": model.extractor_,
        "classes": model.classes_.tolist(),
        "n_features": int(model.n_features_in_),
        "seen_in_training": outliers is not None and outliers.seen_in_training,
        # For each share of samples to be rejected, the threshold of every class, with the digits of single precision.
        "levels": list(LEVELS),
        "reject_above": None if thresholds is None else [[float(f"{-x:.9g}") for x in row] for row in thresholds.T],
    }


class Graph:
    """An ONNX graph, node by node."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, x: Any) -> str:
        """A constant in single precision, by its name."""
        with np.errstate(over="ignore"):
            single = np.asarray(x, dtype=np.float32)
        # No scalar of a model is 0: such a 0 is an underflow.
        if not np.isfinite(single).all() or (single.ndim == 0 and single == 0):
            raise InputError("The model has numbers beyond the range of float32: rescale the features and fit again.")
        self.constants.append(self.onnx.numpy_helper.from_array(single, f"constant_{len(self.constants)}"))
        return str(self.constants[-1].name)

    def node(self, kind: Any, *inputs: Any, out: str | None = None, **attributes: Any) -> str:
        """A node, by the name of its output; inputs are names or numbers, which become constants."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        out = out or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [out], **attributes))
        return out


def _onnx(model: CalibratedClassifier) -> bytes:
    """The graph from ``features`` (n, V) to ``probabilities`` (n, N), ``label`` (n,) and, with base classes, scores."""
    try:
        import onnx
    except ImportError:
        raise RunError("An .onnx file needs onnx: pip install 'hotshot[onnx]'.") from None
    single, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    graph, temperature = Graph(onnx), model.probability_temperature_
    weights, intercepts = (x.astype(np.float64) / temperature for x in (model.coef_, model.intercept_))
    z = _transformed(graph, model.transform_)
    logits = graph.node("Add", graph.node("MatMul", z, weights.T), intercepts)
    graph.node("Softmax", logits, out="probabilities", axis=1)
    # From the logits: probabilities may round to the same number.
    graph.node("ArgMax", logits, out="label", axis=1, keepdims=0)
    outputs: dict[str, tuple[int, list[Any]]] = {
        "probabilities": (single, ["n", len(weights)]),
        "label": (integer, ["n"]),
    }
    if model.outliers_ is not None:
        _score_outliers(graph, z, model.outliers_.known)
        outputs |= {"outlier_score": (single, ["n"]), "best_fit": (integer, ["n"])}
    helper = onnx.helper
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "hotshot",
            [helper.make_tensor_value_info("features", single, ["n", int(model.n_features_in_)])],
            [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
            graph.constants,
        ),
        producer_name="hotshot",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(made, {"hotshot": json.dumps(_about(model))})
    return bytes(made.SerializeToString())


def _transformed(graph: Graph, transform: FeatureTransform) -> str:
    """The features in the space of the model."""
    steps = [
        (transform.scale != 1, "Mul", transform.scale),
        (transform.offset != 0, "Add", transform.offset),
        (transform.power == 0, "Log"),
        (transform.power not in (0, 1), "Pow", transform.power),
        (transform.centre is not None, "Sub", transform.centre),
        (transform.axes is not None, "MatMul", transform.axes),
    ]
    z = "features"
    for is_needed, kind, *values in steps:
        if is_needed:
            z = graph.node(kind, z, *values)
    if transform.unit:
        norm = graph.node("ReduceL2", z, axes=[1], keepdims=1)
        z = graph.node("Div", z, graph.node("Max", norm, TINY))
    return z


def _score_outliers(graph: Graph, z: str, known: KnownClasses) -> None:
    """Outlier scores and best classes: the terms of ``log_ratios`` by powers of the deviations u from the centre."""
    ratios = known.two.ratios.astype(np.float64)
    axes = known.two.axes.astype(np.float64) / known.two.deviations.astype(np.float64)[:, None]
    expected, variances = predictive(ratios, np.zeros_like(ratios), (known.means - known.centre) @ axes, known.sizes)
    constants = np.sum(np.log((1 + ratios) / variances) - expected**2 / variances, axis=1) / 2
    u = graph.node("Sub", graph.node("MatMul", z, axes), known.centre @ axes)
    squares = graph.node("MatMul", graph.node("Mul", u, u), ((1 / (1 + ratios) - 1 / variances) / 2).T)
    linear = graph.node("Add", graph.node("MatMul", u, (expected / variances).T), constants)
    scores = graph.node("Add", squares, linear)
    graph.node("ArgMax", scores, out="best_fit", axis=1, keepdims=0)
    graph.node("Neg", graph.node("ReduceMax", scores, axes=[1], keepdims=0), out="outlier_score")
