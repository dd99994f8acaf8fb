"""The whole method for a batch of tasks."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from few_shot_problems import (
    RAGGED,
    gaussians_of,
    heads_of,
    method_with,
    prepared_bank,
    probabilities,
    random_tasks,
    transfer_of,
)
from hotshot.bank.covariances import Dense
from hotshot.errors import InputError
from hotshot.method import Method
from hotshot.method.calibration import MEAN_RULES
from hotshot.method.hot import fit_tasks
from hotshot.method.transfer import COSTS

B = len(RAGGED)
METHODS = {
    "default": method_with(),
    "per sample": method_with(per="sample"),
    "fixed mix": method_with(mix=0.4),
    "matched scale": method_with(cost="cosine", cost_scale="over-targets"),
    "retrieval": method_with(n_retrieved=2),
    "nearest": method_with(cost="nearest"),
    "three nearest": method_with(cost="nearest", n_retrieved=3, per="sample"),
    "alpha": method_with(alpha=0.21),
    "alpha on the diagonal": method_with(alpha=0.21, alpha_rule="diagonal", per="sample"),
    "sampled": method_with(head="sampled", n_generated=50),
    "sampled with alpha": method_with(head="sampled", n_generated=50, alpha=0.21, per="sample"),
    **{f"cost {cost}": method_with(cost=cost) for cost in list(COSTS)[1:]},
    **{f"mean rule {rule}": method_with(mean_rule=rule) for rule in list(MEAN_RULES)[1:]},
}


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


@pytest.fixture(scope="module")
def base():
    return prepared_bank()


QUERIES = np.random.default_rng(9).normal(size=(80, 6))


def check_same(a, b, task_a, task_b, *, tolerance):
    """Two fits give one task the same weights, Gaussians and predictions."""
    for get in (lambda f: f.transfer.weights, lambda f: f.gaussians.means, lambda f: f.gaussians.weights):
        np.testing.assert_allclose(get(a)[task_a], get(b)[task_b], atol=1e-6)
    np.testing.assert_array_equal(a.gaussians.labels[task_a], b.gaussians.labels[task_b])
    got, expected = (probabilities(f.theta[t], QUERIES) for f, t in ((a, task_a), (b, task_b)))
    np.testing.assert_allclose(got, expected, atol=tolerance)


@pytest.mark.parametrize("shots", [(1, 1, 1), (3, 1, 2), (1, 2)])
def test_a_batch_is_its_tasks_one_at_a_time(base, method, shots):
    support, labels = random_tasks(base, 3, shots)
    together = fit_tasks(base, support, labels, method, n_classes=len(shots), seeds=[4, 5, 6])
    assert together.theta.shape == (3, len(shots), 7)
    for t in range(3):
        alone = fit_tasks(base, support[t : t + 1], labels[t : t + 1], method, n_classes=len(shots), seeds=[4 + t])
        check_same(together, alone, t, 0, tolerance=1e-3)


UNUSUAL = method_with(
    cost="cosine-weighted", epsilon=0.3, cost_scale="over-targets", n_retrieved=3, mean_rule="mix", mix=0.55,
    alpha=0.07, alpha_rule="diagonal", per="sample", head="sampled", n_generated=33, support_weight=1.7, C=0.4,
)  # fmt: skip


def step_by_step(base, support, labels, method, n_classes):
    """The method of samples as targets, every step called with the parameters that are its own."""

    def of(*names):
        return {name: getattr(method, name) for name in names}

    weights = transfer_of(base, support, **of("cost", "epsilon", "cost_scale", "n_retrieved")).weights
    rules = of("mean_rule", "mix", "alpha", "alpha_rule", "n_retrieved")
    gaussians = gaussians_of(base, support, labels, weights, **rules)
    settings = of("head", "n_generated", "support_weight", "C")
    return heads_of(base, gaussians, support, labels, n_classes=n_classes, seeds=[0, 1], **settings)[0]


@pytest.mark.parametrize("mean_rule", MEAN_RULES)
def test_every_parameter_reaches_its_step(base, mean_rule):
    method = replace(UNUSUAL, mean_rule=mean_rule)
    support, labels = random_tasks(base, 2, (2, 1, 1))
    got = fit_tasks(base, support, labels, method, n_classes=3, seeds=[0, 1]).theta
    np.testing.assert_array_equal(got, step_by_step(base, support, labels, method, 3))


@pytest.mark.parametrize("name", [f.name for f in fields(Method)])
def test_every_parameter_matters(base, name):
    """What the test above compares would change if a parameter were forgotten on both sides."""
    support, labels = random_tasks(base, 2, (2, 1, 1))
    usual = replace(UNUSUAL, mean_rule="free-lunch") if name == "mean_rule" else UNUSUAL
    other = replace(usual, **{name: getattr(method_with(), name)})
    a, b = (fit_tasks(base, support, labels, method, n_classes=3, seeds=[0, 1]).theta for method in (usual, other))
    assert np.abs(a - b).max() > 1e-4


def test_at_one_shot_a_class_is_its_sample(base, method):
    support, labels = random_tasks(base, 2, (1, 1, 1))
    by_class, by_sample = (
        fit_tasks(base, support, labels, replace(method, per=per), n_classes=3, seeds=[1, 2])
        for per in ("class", "sample")
    )
    for t in range(2):
        check_same(by_class, by_sample, t, t, tolerance=1e-6)


@pytest.mark.parametrize("per", ["class", "sample"])
def test_gaussians_are_calibrated_from_their_targets_and_the_shots_of_their_class(base, per):
    shots = (3, 1, 2)
    support, labels = random_tasks(base, 2, shots)
    labels[1] = np.random.default_rng(0).permutation(labels[1])
    fitted = fit_tasks(base, support, labels, method_with(cost="cosine", per=per), n_classes=3)
    np.testing.assert_array_equal(fitted.gaussians.labels, labels if per == "sample" else [[0, 1, 2]] * 2)
    prior = 0.7 * B * (B - 3) / ((B + 1) * (B - 1))
    for t in range(2):
        for n, label in enumerate(fitted.gaussians.labels[t]):
            target = support[t, n] if per == "sample" else support[t][labels[t] == label].mean(axis=0)
            m = prior / (prior + 0.3 * shots[label])
            borrowed = fitted.transfer.weights[t, :, n] @ base.means
            np.testing.assert_allclose(fitted.gaussians.means[t, n], m * borrowed + (1 - m) * target, atol=1e-12)


@pytest.mark.parametrize("head", ["bound", "sampled"])
def test_base_classes_that_hold_nan_are_said(base, head):
    broken = replace(base, covariances=Dense(np.full_like(base.covariances.matrices, np.nan)))
    support, labels = random_tasks(base)
    with pytest.raises(InputError, match="hold NaN or infinity: build the bank again"):
        fit_tasks(broken, support, labels, method_with(head=head), n_classes=3)
