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

from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.held_out import LEVELS
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
# Digits that represent single precision exactly.
DIGITS = 9


def export_model(model: CalibratedClassifier, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted classifier to a file that works without hotshot.

    Its results agree with ``predict_proba`` and ``outlier_score`` to single precision. Samples that these refuse, such
    as negative features with the power 0.5, give NaN.

    Parameters
    ----------
    model : HOTClassifier or FreeLunchClassifier
        A fitted classifier.
    path : path
        File to write, an ONNX graph; its name ends in ".onnx".
    overwrite : bool
        Whether to replace a file of that name.

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
    scores = model.alarm_scores_
    to_json(model.classes_, "classes_", {})  # Raises if JSON cannot represent them.
    return {
        "format": FORMAT,
        "version": VERSION,
        "hotshot": __version__,
        "extractor": model.extractor_,
        "classes": model.classes_.tolist(),
        "n_features": int(model.n_features_in_),
        "seen_in_training": bool(model.seen_in_training_),
        # For each share of samples to be rejected, the threshold of every class.
        "levels": list(LEVELS),
        "reject_above": None if scores is None else _rounded(-scores.T),
    }


def _head(model: CalibratedClassifier) -> tuple[np.ndarray, np.ndarray]:
    """W (N, V) and b (N,), with the temperature in them."""
    temperature = model.probability_temperature_
    return model.coef_.astype(np.float64) / temperature, model.intercept_.astype(np.float64) / temperature


def _familiarity(known: KnownClasses) -> dict[str, np.ndarray]:
    """The terms of ``log_ratios`` by powers of u: A (V, V) and a (V,), and alpha, beta and gamma of each class."""
    two = known.two
    axes = (two.axes.astype(np.float64) / two.deviations.astype(np.float64)[:, None]).T
    ratios = two.ratios.astype(np.float64)
    expected, variances = predictive(ratios, np.zeros_like(ratios), (known.means - known.centre) @ axes.T, known.sizes)
    return {
        "axes": axes,
        "centre": axes @ known.centre,
        "squares": (1 / (1 + ratios) - 1 / variances) / 2,
        "slopes": expected / variances,
        "constants": np.sum(np.log((1 + ratios) / variances) - expected**2 / variances, axis=1) / 2,
    }


def _rounded(x: np.ndarray) -> Any:
    """Nested lists of numbers, rounded to single precision."""
    return [_rounded(row) for row in x] if x.ndim > 1 else [float(f"{value:.{DIGITS}g}") for value in x.tolist()]


def _onnx(model: CalibratedClassifier) -> bytes:
    """The graph from ``features`` (n, V) to ``probabilities`` (n, N), ``label`` (n,) and, with base classes, scores."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise RunError("An .onnx file needs onnx: pip install 'hotshot[onnx]'.") from None
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(x: Any) -> str:
        with np.errstate(over="ignore"):
            single = np.asarray(x, dtype=np.float32)
        # No scalar of a model is 0: such a 0 is an underflow.
        if not np.isfinite(single).all() or (single.ndim == 0 and single == 0):
            raise InputError("The model has numbers beyond the range of float32: rescale the features and fit again.")
        name = f"constant_{len(constants)}"
        constants.append(numpy_helper.from_array(single, name))
        return name

    def node(kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        out = out or f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    transform, known = model.transform_, model.known_
    z = "features"
    if transform.scale != 1:
        z = node("Mul", z, constant(transform.scale))
    if transform.offset:
        z = node("Add", z, constant(transform.offset))
    if transform.power == 0:
        z = node("Log", z)
    elif transform.power != 1:
        z = node("Pow", z, constant(transform.power))
    if transform.centre is not None:
        z = node("Sub", z, constant(transform.centre))
    if transform.axes is not None:
        z = node("MatMul", z, constant(transform.axes))
    if transform.unit:
        norm = node("ReduceL2", z, axes=[1], keepdims=1)
        z = node("Div", z, node("Max", norm, constant(TINY)))
    weights, intercepts = _head(model)
    logits = node("Add", node("MatMul", z, constant(weights.T)), constant(intercepts))
    node("Softmax", logits, out="probabilities", axis=1)
    # From the logits: probabilities may round to the same number.
    node("ArgMax", logits, out="label", axis=1, keepdims=0)
    outputs: dict[str, tuple[Any, list[Any]]] = {
        "probabilities": (TensorProto.FLOAT, ["n", len(weights)]),
        "label": (TensorProto.INT64, ["n"]),
    }
    if known is not None:
        found = _familiarity(known)
        u = node("Sub", node("MatMul", z, constant(found["axes"].T)), constant(found["centre"]))
        square = node("MatMul", node("Mul", u, u), constant(found["squares"].T))
        linear = node("Add", node("MatMul", u, constant(found["slopes"].T)), constant(found["constants"]))
        ratios = node("Add", square, linear)
        node("ArgMax", ratios, out="best_fit", axis=1, keepdims=0)
        node("Neg", node("ReduceMax", ratios, axes=[1], keepdims=0), out="outlier_score")
        outputs |= {"outlier_score": (TensorProto.FLOAT, ["n"]), "best_fit": (TensorProto.INT64, ["n"])}
    graph = helper.make_graph(
        nodes,
        "hotshot",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", int(model.n_features_in_)])],
        [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
        constants,
    )
    made = helper.make_model(
        graph,
        producer_name="hotshot",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(made, {"hotshot": json.dumps(_about(model))})
    return bytes(made.SerializeToString())
