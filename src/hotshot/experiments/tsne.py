"""Appendix figures: generated features around their support, Free-Lunch beside H-OT."""

from __future__ import annotations

import numpy as np
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score

from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.experiments.experiment import Experiment
from hotshot.experiments.findings import Findings, Number, Table
from hotshot.experiments.setting import Setting
from hotshot.figures import embedding
from hotshot.heads.sampled import generate_features
from hotshot.method import fit_tasks

PER_CLASS = 100


def run(setting: Setting) -> Findings:
    """Features drawn from the calibrated Gaussians of the first one-shot task, in two dimensions."""
    task = setting.task()
    base = setting.features.base
    X = setting.features.X[task.support].astype(base.dtype, copy=False)
    queries = setting.features.X[task.query].astype(base.dtype, copy=False)
    classes, labels = np.unique(task.support_labels, return_inverse=True)
    panels, rows = {}, []
    for name, model in {"Free-Lunch": FreeLunchClassifier(base), "H-OT": HOTClassifier(base)}.items():
        prepared, method = model.parts(X)
        support = prepared.transform(X)
        found = fit_tasks(
            prepared, support[None], labels[None], method, n_classes=setting.ways, seeds=[setting.seed]
        )
        gaussians = found.gaussians
        generated = generate_features(
            np.asarray(gaussians.means[0]),
            np.asarray(gaussians.covariances(prepared)[0]),
            np.full(setting.ways, PER_CLASS),
            np.random.default_rng(setting.seed),
            gaussians.shift_factor,
        )
        generated_labels = np.repeat(np.asarray(gaussians.labels[0]), PER_CLASS)
        points = TSNE(random_state=setting.seed, init="pca", perplexity=30).fit_transform(
            np.concatenate([support, generated])
        )
        panels[name] = {
            "support": points[: len(X)],
            "support_labels": labels,
            "generated": points[len(X) :],
            "generated_labels": generated_labels,
        }
        right = np.argmax(found.decision(prepared.transform(queries)[None])[0], axis=1)
        accuracy = float(np.mean(classes[right] == task.query_labels))
        rows.append(
            (name, Number(float(silhouette_score(generated, generated_labels)), None), Number(100 * accuracy))
        )
    table = Table(
        f"Generated features, first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("method", "silhouette", "accuracy in %"),
        tuple(rows),
        (
            "The silhouette, from -1 to 1, tells how far generated classes lie apart; each method generates in its own "
            "space, and features that lie apart are not by that alone the right ones.",
        ),
    )
    return Findings((), (table,), {"tsne": embedding(panels, [str(c) for c in classes])})


EXPERIMENT = Experiment("tsne", "Generated features in two dimensions", "Figures 5 and 6 (appendix)", run)
