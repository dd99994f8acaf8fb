"""Every form of covariances answers as the dense matrices would, and predictions do not depend on the exact form."""

from __future__ import annotations

import numpy as np
import pytest

from bounded import at_most
from conftest import make_bank
from few_shot_problems import RAGGED, plain_space, ragged_bank, random_covariances
from hotshot import BaseClasses, HOTClassifier
from hotshot.bank import covariances
from hotshot.bank.covariances import Dense, diagonal

B, TASKS, N = len(RAGGED), 2, 3
FORMS = ("auto", "dense", "factored", "mixed", "diagonal", "pooled", "low-rank")
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11}


def naive_covariances(bank, transform, form="dense"):
    """Covariances (B, V, V) of the samples in the space of a transform, sample by sample in double precision."""
    z = transform(bank.samples).astype(np.float64)
    deviations = [z[bank.labels == b] - z[bank.labels == b].mean(axis=0) for b in range(len(bank.names))]
    scatters = [sum(np.outer(x, x) for x in rows) for rows in deviations]
    pooled = sum(scatters) / max(len(z) - len(bank.names), 1)
    if max(bank.counts) == 1 and len(z) > 1:
        pooled = np.cov(z.T)
    if form == "pooled":
        return np.stack([pooled] * len(bank.names))
    matrices = [s / (n - 1) if n > 1 else pooled for s, n in zip(scatters, bank.counts, strict=True)]
    return np.stack([np.diag(np.diag(c)) if form == "diagonal" else c for c in matrices])


def prepare(bank, form, monkeypatch, normalize="centre-l2"):
    """The bank prepared; "mixed" is what "auto" makes of a bank too large for dense matrices."""
    if form == "mixed":
        monkeypatch.setattr(covariances, "DENSE_ENTRIES", 0)
        form = "auto"
    return bank.prepare(plain_space(normalize=normalize, covariance=form))


def check_form(form, expected, dtype, tolerance):
    """All answers of a form against dense matrices (K, V, V)."""
    rng = np.random.default_rng(7)
    count, width = expected.shape[:2]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(form.variances, np.einsum("kvv->kv", expected), atol=tolerance * scale)

    weights = rng.gamma(0.5, size=(5, count))
    weights[1] = np.eye(count)[count // 2]
    weights[2] *= rng.uniform(size=count) < 0.5
    weights[3] = 0
    mixtures = form.mixtures(weights.astype(dtype))
    assert mixtures.dtype == dtype
    naive = np.einsum("rk,kvw->rvw", weights, expected)
    np.testing.assert_allclose(mixtures, naive, atol=tolerance * scale * count, rtol=0)

    W = rng.normal(size=(TASKS, N, width))
    check_quadratic(form, W, np.broadcast_to(expected, (TASKS, *expected.shape)), dtype, tolerance * scale)


def check_quadratic(form, W, matrices, dtype, tolerance):
    """W Sigma_k W' and its gradient against dense matrices (tasks, K, V, V)."""
    count, width = matrices.shape[1:3]
    slope = np.random.default_rng(8).normal(size=(TASKS, count, N, N))
    slope = slope + np.swapaxes(slope, 2, 3)
    quadratic, gradient_of = form.quadratic(W.astype(dtype))
    assert quadratic.dtype == dtype
    naive = np.einsum("tnv,tkvw,tmw->tknm", W, matrices, W)
    np.testing.assert_allclose(quadratic, naive, atol=10 * tolerance * width, rtol=0)
    naive = 2 * np.einsum("tknm,tmv,tkvw->tnw", slope, W, matrices)
    np.testing.assert_allclose(gradient_of(slope.astype(dtype)), naive, atol=50 * tolerance * width * count, rtol=0)


def low_rank_matrices(form):
    """What leading axes and the rest stand for (K, V, V)."""
    rows = form.rows.astype(np.float64) * form.scales[..., None]
    return np.einsum("krv,krw->kvw", rows, rows) + form.diagonal[:, :, None] * np.eye(rows.shape[2])


# --- all forms against dense matrices -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalize", ["centre-l2", None])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_answers_as_dense_matrices_do(form, normalize, dtype, monkeypatch):
    monkeypatch.setattr(covariances, "RANK", 2)
    bank = ragged_bank(dtype=dtype)
    base = prepare(bank, form, monkeypatch, normalize)
    if form == "low-rank":
        assert base.covariances.rows.shape == (B, 2, 6)
        expected = low_rank_matrices(base.covariances)
    else:
        expected = naive_covariances(bank, base.transform, form)
    check_form(base.covariances, expected, dtype, TOLERANCE[dtype])


@pytest.mark.parametrize("form", FORMS[:-1])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1,), (9,), (2, 2), (1, 40, 1), (3, 3, 3)])
def test_classes_of_one_sample_and_single_classes_have_every_form(form, sizes, monkeypatch):
    bank = ragged_bank(sizes=sizes, width=4)
    base = prepare(bank, form, monkeypatch)
    check_form(base.covariances, naive_covariances(bank, base.transform, form), np.float64, 1e-11)


@pytest.mark.parametrize("is_diagonal", [False, True])
def test_every_task_may_have_covariances_of_its_own(is_diagonal):
    rng = np.random.default_rng(0)
    matrices = random_covariances(rng, TASKS * 4, 5).reshape(TASKS, 4, 5, 5)
    form = Dense(matrices)
    if is_diagonal:
        form = diagonal(np.einsum("tkvv->tkv", matrices))
        matrices = matrices * np.eye(5)
    check_quadratic(form, rng.normal(size=(TASKS, N, 5)), matrices, np.float64, 1e-11)


# --- which form is chosen -----------------------------------------------------------------------------------


def test_in_banks_with_more_entries_than_the_limit_the_size_of_a_class_decides(monkeypatch):
    monkeypatch.setattr(covariances, "DENSE_ENTRIES", B * 6 * 6)
    assert ragged_bank().prepare(plain_space()).covariances.size == B * 6 * 6
    monkeypatch.setattr(covariances, "DENSE_ENTRIES", B * 6 * 6 - 1)
    for width, dense in {30: {3}, 6: {0, 1, 2, 3, 5}}.items():
        form = ragged_bank(width=width).prepare(plain_space()).covariances
        of_classes = {b: part for part, mine in zip(form.parts, form.classes, strict=True) for b in mine}
        # Of 7, 12, 3, 30, 1 and 13 samples half of the axes and more is dense, and one sample borrows.
        assert {b for b, part in of_classes.items() if isinstance(part, Dense)} == dense
        assert {b for b, part in of_classes.items() if getattr(part, "is_diagonal", False)} == {4}


@pytest.mark.parametrize("form", ["factored", "auto", "diagonal", "pooled"])
def test_no_matrix_is_formed_for_every_class(form, monkeypatch):
    # Dense matrices of all classes would take half a gigabyte.
    B, width = 2000, 256
    monkeypatch.setattr(covariances, "DENSE_ENTRIES", 2**20)
    monkeypatch.setattr(covariances, "class_covariances", None)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(B), 3)
    X = rng.normal(size=(B, width)).astype(np.float32)[y] + rng.normal(size=(3 * B, width)).astype(np.float32)
    bank = BaseClasses.from_samples(X, y)
    novel = rng.normal(size=(10, width)).astype(np.float32)
    with at_most(B * width**2 * 4 / 5):
        model = HOTClassifier(bank, covariance=form, n_components=None, n_retrieved=20)
        model.fit(novel, np.arange(10) % 5)
        base, _ = model.parts()
    assert base.covariances.size <= X.size
    assert np.isfinite(model.predict_proba(novel)).all()


# --- approximations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "rank"), [(6, 2), (40, 2)])
def test_leading_axes_are_the_best_ones_and_variances_are_kept(width, rank, monkeypatch):
    monkeypatch.setattr(covariances, "RANK", rank)
    bank = ragged_bank(sizes=(7, 12, 3, 30, 1, 2), width=width)
    base = bank.prepare(plain_space(covariance="low-rank"))
    full, form = naive_covariances(bank, base.transform), base.covariances
    np.testing.assert_allclose(form.variances, np.einsum("bvv->bv", full), rtol=1e-2)
    for k in np.flatnonzero(bank.counts > 1):
        largest = np.linalg.eigvalsh(full[k])[-rank:]
        # The class of two samples varies along one axis.
        np.testing.assert_allclose(np.sort(form.scales[k] ** 2), largest, atol=1e-12)
    np.testing.assert_allclose(low_rank_matrices(form)[4], np.diag(np.diag(full[4])), atol=1e-15)


# --- predictions do not depend on the exact form --------------------------------------------------------------

# Of few rows, the factored covariances take less memory than one matrix per Gaussian; of many, more.
BANKS = {"few rows": (3, 4, 2, 5, 1, 2), "many rows": (30, 25, 1, 41, 33, 28)}
WIDTH = 12


def novel_task(dtype, shots=3):
    X, y = make_bank(4, 20 + shots, WIDTH, seed=5, spread=0.8)
    support = np.concatenate([np.flatnonzero(y == c)[:shots] for c in range(4)])
    queries = np.setdiff1d(np.arange(len(y)), support)
    return X[support].astype(dtype), y[support], X[queries].astype(dtype)


# Every pair of these is there.
@pytest.mark.parametrize(
    ("per", "shift", "dtype"),
    [
        ("class", {}, np.float32),
        ("class", {"alpha": 0.21}, np.float64),
        ("class", {"alpha": 0.21, "alpha_rule": "diagonal"}, np.float64),
        ("sample", {}, np.float64),
        ("sample", {"alpha": 0.21}, np.float32),
        ("sample", {"alpha": 0.21, "alpha_rule": "diagonal"}, np.float32),
    ],
)
@pytest.mark.parametrize("rows", BANKS)
@pytest.mark.parametrize("head", ["bound", "sampled"])
def test_factored_and_dense_covariances_give_the_same_predictions(head, rows, per, shift, dtype, monkeypatch):
    bank = ragged_bank(sizes=BANKS[rows], width=WIDTH, dtype=dtype)
    X, y, queries = novel_task(dtype)
    settings = {"head": head, "per": per, "n_generated": 40, "random_state": 0, **shift}
    dense = HOTClassifier(bank, covariance="dense", **settings).fit(X, y).predict_proba(queries)
    factored = HOTClassifier(bank, covariance="factored", **settings).fit(X, y).predict_proba(queries)
    np.testing.assert_allclose(factored, dense, atol=3e-4)
    monkeypatch.setattr(covariances, "DENSE_ENTRIES", 0)
    by_size = HOTClassifier(bank, **settings).fit(X, y).predict_proba(queries)
    np.testing.assert_allclose(by_size, dense, atol=3e-4)


def test_single_precision_keeps_the_deviations_of_samples_far_from_zero():
    bank = ragged_bank(sizes=(6, 5, 4, 6), width=WIDTH)
    far = BaseClasses.from_samples((bank.samples + 50).astype(np.float32), bank.labels)
    spaces = [plain_space(normalize=None, covariance=form) for form in ("dense", "factored")]
    dense, factored = (far.prepare(space).covariances.mixtures(np.eye(4, dtype=np.float32)) for space in spaces)
    np.testing.assert_allclose(factored, dense, atol=1e-4 * np.abs(dense).max())
