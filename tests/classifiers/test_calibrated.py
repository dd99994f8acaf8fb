"""HOTClassifier and FreeLunchClassifier: what users may rely on, whatever the features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, parameter_set
from hotshot.errors import InputError, ParameterError, ScaleWarning
from hotshot.transport import Status


def relu_features(n_classes=10, per_class=30, width=16, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    centres = rng.gamma(0.5, 1.0, size=(n_classes, width))
    return np.maximum(centres[labels] + 0.3 * rng.normal(size=(len(labels), width)), 0), labels


def signed_features():
    return make_bank(10, 30, 16)


def unit_features():
    X, y = signed_features()
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


KINDS = {"relu": relu_features, "unit norm": unit_features, "signed": signed_features}


def split(X, y, n_base=6, shots=2):
    """Base classes, support and query of the last classes."""
    base = y < n_base
    support = np.concatenate([np.flatnonzero(y == c)[:shots] for c in np.unique(y[~base])])
    query = np.setdiff1d(np.flatnonzero(~base), support)
    return (X[base], y[base]), (X[support], y[support]), (X[query], y[query])


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_offset_of_the_power_is_added_to_the_features(scale):
    X, y = relu_features()
    (Xb, yb), (Xs, ys), (Xq, _) = split(scale * X, y)
    settings = {"power": 0.5, "calibrate_probabilities": False}
    with_offset = HOTClassifier(BaseClasses.from_samples(Xb, yb), power_offset=3.0, **settings).fit(Xs, ys)
    shifted = HOTClassifier(BaseClasses.from_samples(Xb + 3, yb), **settings).fit(Xs + 3, ys)
    np.testing.assert_allclose(with_offset.predict_proba(Xq), shifted.predict_proba(Xq + 3), atol=1e-4)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("include_base", [False, True])
@pytest.mark.parametrize(("n_base", "per_class"), [(1, 2), (1, 20), (3, 5), (8, 2), (8, 10), (30, 2), (30, 20)])
def test_a_small_bank_is_not_behind_no_bank(n_base, per_class, include_base, power):
    """New classes differ along axes in which few base samples do not vary."""
    differences, settings = [], {"mean_rule": "posterior"} if n_base > 20 else {}
    for seed in range(4):
        X, y = make_bank(n_base + 5, 40, 128, spread=1.0, seed=seed)
        X = X if power == 1.0 else np.maximum(X, 0)
        place = np.tile(np.arange(40), n_base + 5)
        bank, support, query = (y < n_base) & (place < per_class), (y >= n_base) & (place < 2), place >= 30
        query &= include_base | (y >= n_base)
        model = HOTClassifier(BaseClasses.from_samples(X[bank], y[bank]), include_base=include_base, **settings)
        known = support | bank if include_base else support
        found = [
            np.mean(fitted.predict(X[query]) == y[query])
            for fitted in (model.fit(X[support], y[support]), HOTClassifier().fit(X[known], y[known]))
        ]
        differences.append(found[0] - found[1])
    assert np.mean(differences) > -0.05


@pytest.mark.parametrize("shots", [2, 3])
def test_new_classes_leave_their_samples_to_few_old_classes_of_few_samples(shots):
    differences = []
    for seed in range(4):
        X, y = make_bank(16, 40, 64, spread=1.5, seed=seed)
        place, is_old = np.tile(np.arange(40), 16), y < 8
        bank, support, query = is_old & (place < 2), ~is_old & (place < shots), place >= 20
        model = HOTClassifier(BaseClasses.from_samples(X[bank], y[bank]), include_base=True)
        plain = HOTClassifier().fit(X[bank | support], y[bank | support])
        right = model.fit(X[support], y[support]).predict(X[query]) == y[query]
        differences.append(right[is_old[query]].mean() - plain.score(X[query & is_old], y[query & is_old]))
    assert np.mean(differences) > -0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e-20, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaling_all_features_changes_no_default_prediction(kind, scale, dtype):
    X, y = KINDS[kind]()
    results = []
    for factor in (1.0, scale):
        (Xb, yb), (Xs, ys), (Xq, yq) = split((X * factor).astype(dtype), y)
        model = HOTClassifier(BaseClasses.from_samples(Xb, yb)).fit(Xs, ys)
        results.append((model.predict(Xq), model.predict_proba(Xq)))
        assert np.mean(model.predict(Xq) == yq) > 0.9
    assert np.array_equal(results[0][0], results[1][0])
    assert np.allclose(results[0][1], results[1][1], atol=1e-3 if dtype == np.float32 else 1e-6)


def test_authors_set_equals_their_program_written_out():
    """Temperature 0.3, base features raw, (x + 1e-6)**0.5, mix 0.7, alpha in every entry: means by hand."""
    import ot
    from sklearn.linear_model import LogisticRegression

    (Xb, yb), (Xs, ys), _ = split(*relu_features(per_class=12), shots=1)
    model = HOTClassifier(BaseClasses.from_samples(Xb, yb), **parameter_set("authors"), random_state=0)
    model.fit(Xs, ys)
    x = (Xs + 1e-6) ** 0.5
    probability = LogisticRegression(max_iter=300).fit(Xb, yb).predict_proba(Xb)[np.arange(len(yb)), yb]
    unit = lambda z: z / np.linalg.norm(z, axis=1, keepdims=True)  # noqa: E731
    cost = np.empty((6, len(x)))
    for b in range(6):
        p = np.exp(probability[yb == b] / 0.3)
        distance = 1 - unit(Xb[yb == b]) @ unit(x).T
        plan = ot.sinkhorn(p / p.sum(), np.full(len(x), 1 / len(x)), distance, 0.01, numItermax=20_000)
        cost[b] = (distance * plan).sum(axis=0)
    plan = ot.sinkhorn(np.full(6, 1 / 6), np.full(len(x), 1 / len(x)), cost, 0.01, numItermax=20_000)
    weights = len(x) * plan
    means = np.stack([Xb[yb == b].mean(axis=0) for b in range(6)])
    assert np.allclose(model.transfer_weights_, weights.T, atol=1e-4)
    assert np.allclose(model.learned_cost_, cost, atol=1e-5)
    expected_means = 0.7 * weights.T @ means + 0.3 * x
    assert np.allclose(model.calibrated_means_ @ model.transform_.axes.T, expected_means, atol=1e-3)


def test_fitted_attributes_tell_what_happened():
    (Xb, yb), (Xs, ys), _ = split(*signed_features(), shots=1)
    model = HOTClassifier(BaseClasses.from_samples(Xb, yb)).fit(Xs, ys)
    assert model.transfer_weights_.shape == (4, 6)
    assert np.allclose(model.transfer_weights_.sum(axis=1), 1)
    assert np.allclose(model.plan_.sum(axis=0), 1 / 4, atol=1e-6)
    assert np.allclose(model.plan_.sum(axis=1), 1 / 6, atol=1e-6)
    assert model.learned_cost_.shape == (6, 4)
    assert model.status_counts_ == {Status.CONVERGED: 6 + 1}
    assert model.power_ == 1


def test_without_base_it_is_logistic_regression_on_powers():
    from sklearn.linear_model import LogisticRegression

    X, y = relu_features(3, 10)
    model = HOTClassifier().fit(X, y)
    plain = LogisticRegression(max_iter=1000).fit(np.sqrt(X), y)
    assert np.allclose(model.predict_proba(X), plain.predict_proba(np.sqrt(X)), atol=1e-6)
    binary = HOTClassifier().fit(X[y < 2], y[y < 2])
    plain = LogisticRegression(max_iter=1000).fit(np.sqrt(X[y < 2]), y[y < 2])
    assert np.allclose(binary.decision_function(X), plain.decision_function(np.sqrt(X)), atol=1e-6)


def test_free_lunch_borrows_equally_from_the_nearest_two():
    (Xb, yb), (Xs, ys), (Xq, yq) = split(*relu_features(), shots=1)
    base = BaseClasses.from_samples(Xb, yb)
    model = FreeLunchClassifier(base, random_state=0).fit(Xs, ys)
    distances = np.linalg.norm(np.sqrt(Xs)[:, None] - base.means[None], axis=2)
    for weights, nearest in zip(model.transfer_weights_, np.argsort(distances, axis=1)[:, :2], strict=True):
        assert np.allclose(weights[nearest], 0.5)
        assert np.isclose(weights.sum(), 1)
    assert model.score(Xq, yq) > 0.8
    assert model.explain().loans[0].own_share == pytest.approx(1 / 3)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale_dependent_sets_warn_far_from_their_scale(scale):
    (Xb, yb), (Xs, ys), _ = split(*relu_features())
    with pytest.warns(ScaleWarning, match="normalize='centre-l2'"):
        HOTClassifier(BaseClasses.from_samples(scale * Xb, yb), **parameter_set("authors")).fit(scale * Xs, ys)
    with pytest.warns(ScaleWarning):
        FreeLunchClassifier(BaseClasses.from_samples(scale * Xb, yb)).fit(scale * Xs, ys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FreeLunchClassifier(BaseClasses.from_samples(Xb, yb)).fit(Xs, ys)
        HOTClassifier(BaseClasses.from_samples(scale * Xb, yb)).fit(scale * Xs, ys)


def good():
    (Xb, yb), (Xs, ys), _ = split(*signed_features())
    return BaseClasses.from_samples(Xb, yb), Xs.copy(), ys.copy()


def changed(X, value):
    X = X.copy()
    X[1, 2] = value
    return X


BAD_FITS = {
    "NaN": (lambda b, X, y: (b, changed(X, np.nan), y, {}), InputError, "row 1, column 2"),
    "one class": (lambda b, X, y: (None, X, np.zeros_like(y), {}), InputError, "at least 2 classes"),
    "one sample": (lambda b, X, y: (None, X[:1], y[:1], {}), InputError, "at least 2 classes"),
    "other width": (lambda b, X, y: (b, X[:, :-1], y, {}), InputError, "same model"),
    "labels continuous": (lambda b, X, y: (b, X, y + 0.5, {}), InputError, "class labels"),
    "negatives under a power": (lambda b, X, y: (b, X, y, {"power": 0.5}), InputError, "power=1"),
    "negatives under log": (lambda b, X, y: (b, X, y, {"power": 0}), InputError, "power=1"),
    "base is no bank": (lambda b, X, y: (X, X, y, {}), ParameterError, "from_samples"),
    "epsilon 0": (lambda b, X, y: (b, X, y, {"epsilon": 0.0}), ParameterError, "epsilon"),
    "epsilon NaN": (lambda b, X, y: (b, X, y, {"epsilon": np.nan}), ParameterError, "epsilon"),
    "unknown cost": (lambda b, X, y: (b, X, y, {"cost": "manhattan"}), ParameterError, "hierarchical"),
    "unknown head": (lambda b, X, y: (b, X, y, {"head": "expected"}), ParameterError, "'bound', 'sampled'"),
    "too many classes for the memory": (
        lambda b, X, y: (b, np.tile(X, (200, 1)), np.arange(200 * len(X)) // 2, {}),
        ParameterError,
        "800 new classes alone needs about .* GB of memory: pass include_base=True",
    ),
    "mix above 1": (lambda b, X, y: (b, X, y, {"mix": 1.5}), ParameterError, "mix"),
    "too many axes": (lambda b, X, y: (b, X, y, {"n_components": 17}), ParameterError, "at most"),
    "C infinite": (lambda b, X, y: (b, X, y, {"C": np.inf}), ParameterError, "'C'"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_fits_raise_one_named_error(case):
    make, kind, message = BAD_FITS[case]
    base, X, y, parameters = make(*good())
    with pytest.raises(kind, match=message) as caught:
        HOTClassifier(base, **parameters).fit(X, y)
    assert "\n" not in str(caught.value)


ODD_FITS = {
    "half precision": lambda b, X, y: (b, X.astype(np.float16), y, {}),
    "zero vector": lambda b, X, y: (b, np.concatenate([X, X[:1] * 0]), [*y, y[0]], {}),
    "constant feature": lambda b, X, y: (b, np.where(np.arange(16) == 3, 1.0, X), y, {}),
    "duplicate rows": lambda b, X, y: (b, np.repeat(X, 2, axis=0), np.repeat(y, 2), {}),
    "equal classes": lambda b, X, y: (b, np.concatenate([X, X[:1]]), [*y, 99], {}),
    "tiny epsilon": lambda b, X, y: (b, X, y, {"epsilon": 1e-8}),
    "huge epsilon": lambda b, X, y: (b, X, y, {"epsilon": 1e8}),
    "more retrieved than there are": lambda b, X, y: (b, X, y, {"n_retrieved": 1000}),
    "one retrieved": lambda b, X, y: (b, X, y, {"n_retrieved": 1}),
    "one class": lambda b, X, y: (b, X, np.zeros_like(y), {}),
    "one sample": lambda b, X, y: (b, X[:1], y[:1], {}),
    "one base class": lambda b, X, y: (BaseClasses.from_samples(b.samples[:30], [0] * 30), X, y, {}),
    "one base sample": lambda b, X, y: (BaseClasses.from_samples(b.samples[:1], [0]), X, y, {}),
    "base classes of one sample": lambda b, X, y: (BaseClasses.from_samples(b.samples[:9], range(9)), X, y, {}),
    "constant base": lambda b, X, y: (BaseClasses.from_samples(-np.ones((9, 16)), [0, 1, 2] * 3), X, y, {}),
    "boolean labels": lambda b, X, y: (b, X, y > y.min(), {}),
    "support weight 0": lambda b, X, y: (b, X, y, {"support_weight": 0}),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD_FITS)
@pytest.mark.parametrize("head", ["bound", "sampled"])
def test_odd_fits_have_a_finite_result(case, head):
    base, X, y, parameters = ODD_FITS[case](*good())
    model = HOTClassifier(base, head=head, random_state=0, **parameters).fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert np.allclose(probabilities.sum(axis=1), 1)


def test_tensors_are_taken_to_numpy():
    torch = pytest.importorskip("torch")
    base, X, y = good()
    model = HOTClassifier(base).fit(torch.tensor(X), y)
    assert np.array_equal(model.predict(torch.tensor(X)), HOTClassifier(base).fit(X, y).predict(X))
