"""Transport with a relaxed second marginal: POT agrees, the first-order conditions hold, the limits are known plans."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.arrays import to_numpy
from hotshot.transport import Status, count_statuses, solve

from .checker import as_float64, check_cost, check_odds
from .generators import FAMILIES, problems, random_problem

RELAXATIONS = st.floats(-3, 3).map(lambda power: 10.0**power)


def check_relaxed(cost, a, epsilon, solution, within=1e-8):
    """Assert what holds for a relaxed solution, apart from its column sums, for which a law below has the condition."""
    a, plan = as_float64(a), as_float64(solution.plan)
    assert solution.converged, count_statuses(solution.status)
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=-1), a, atol=within * a.sum(axis=-1).max())
    assert (to_numpy(solution.marginal_error) <= within).all()
    check_cost(cost, solution)
    check_odds(cost, epsilon, solution)


@pytest.mark.filterwarnings("ignore:If reg_type = entropy")
@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
@pytest.mark.parametrize("relaxation", [0.02, 0.3, 5.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_agrees_with_pot(family, relaxation, method):
    ot = pytest.importorskip("ot")
    p = random_problem(family, rows=30, columns=6, epsilon=0.2, seed=21)
    wished = 1.7 * p.b
    expected = ot.unbalanced.sinkhorn_unbalanced(
        p.a, wished, p.cost, p.epsilon, (np.inf, relaxation), reg_type="entropy", numItermax=100_000, stopThr=1e-13
    )
    solution = solve(p.cost, p.a, wished, epsilon=p.epsilon, relaxation=relaxation, method=method)
    np.testing.assert_allclose(solution.plan, expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 6), (6, 30), (1, 4), (4, 1), (40, 300)])
@pytest.mark.parametrize("relaxation", [0.01, 1.0, 1000.0])
def test_every_shape_is_solved(shape, relaxation):
    p = random_problem("uniform", *shape, epsilon=0.1, seed=22)
    check_relaxed(p.cost, p.a, p.epsilon, solve(p.cost, p.a, 3 * p.b, epsilon=p.epsilon, relaxation=relaxation))


@given(p=problems(batch=(2,)), relaxation=RELAXATIONS, total=st.floats(0.2, 5), power=st.floats(-4, 4))
def test_a_relaxed_solution_is_one_in_all_units(p, relaxation, total, power):
    b, unit = total * p.b, 10.0**power
    one = solve(p.cost, p.a, b, epsilon=p.epsilon, relaxation=relaxation)
    check_relaxed(p.cost, p.a, p.epsilon, one)
    units = solve(p.cost * unit, p.a, b, epsilon=p.epsilon * unit, relaxation=relaxation * unit).plan
    mass = solve(p.cost, p.a * unit, b * unit, epsilon=p.epsilon, relaxation=relaxation).plan
    np.testing.assert_allclose(units, one.plan, atol=1e-6)
    np.testing.assert_allclose(mass / unit, one.plan, atol=1e-6)


@given(p=problems(lowest_epsilon=0.05), relaxation=RELAXATIONS)
def test_costs_rise_by_the_price_of_the_column_sums(p, relaxation):
    """The first-order condition: C + epsilon log T + rho log(b' / b) depends on the row alone."""
    plan = solve(p.cost, p.a, p.b, epsilon=p.epsilon, relaxation=relaxation, tolerance=1e-12).plan
    with np.errstate(divide="ignore"):
        price = p.cost + p.epsilon * np.log(plan) + relaxation * np.log(plan.sum(axis=0) / p.b)
    seen = plan > 1e-9 * plan.max()
    spread = np.where(seen, price, -np.inf).max(axis=1) - np.where(seen, price, np.inf).min(axis=1)
    np.testing.assert_allclose(spread, 0, atol=1e-5 * (1 + relaxation))


@given(p=problems())
def test_a_strong_wish_is_a_constraint_and_a_weak_one_leaves_a_softmax_of_each_row(p):
    weak, strong = (1e-7 * min(p.epsilon, 1.0), 1e7 * max(p.epsilon, 1.0))
    weak, strong = (solve(p.cost, p.a, p.b, epsilon=p.epsilon, relaxation=rho).plan for rho in (weak, strong))
    np.testing.assert_allclose(strong, solve(p.cost, p.a, p.b, epsilon=p.epsilon).plan, atol=1e-5)
    free = np.exp((p.cost.min(axis=1, keepdims=True) - p.cost) / p.epsilon)
    np.testing.assert_allclose(weak, p.a[:, None] * free / free.sum(axis=1, keepdims=True), atol=1e-4)


def test_each_problem_has_its_own_relaxation():
    p = random_problem("uniform", epsilon=0.1, batch=(3,), seed=24)
    strengths = np.array([0.01, 1.0, 100.0])
    together = solve(p.cost, p.a, p.b, epsilon=p.epsilon, relaxation=strengths)
    for i, strength in enumerate(strengths):
        alone = solve(p.cost[i], p.a[i], p.b[i], epsilon=p.epsilon, relaxation=strength)
        np.testing.assert_allclose(together.plan[i], alone.plan, atol=1e-8)


def test_columns_without_a_wish_stay_empty_and_bad_problems_alone():
    rng = np.random.default_rng(23)
    cost, b = rng.random((3, 8, 4)), rng.random((3, 4))
    b[0, 2] = 0
    cost[1, 0, 0] = np.nan
    b[2] = 0
    solution = solve(cost, None, b, epsilon=0.1, relaxation=0.5)
    assert solution.status.tolist() == [Status.CONVERGED, Status.NOT_FINITE, Status.BAD_MASS]
    assert (solution.plan[0, :, 2] == 0).all()
    assert solution.plan[0].sum() == pytest.approx(1)
    assert (solution.plan[1:] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_relaxed_problems_on_every_array_library(xp, dtype):
    p = random_problem("uniform", epsilon=0.05, batch=(3,))
    cost, a, b = (xp.asarray(x.astype(dtype)) for x in (p.cost, p.a, p.b))
    within = 1e-8 if dtype == "float64" else 1e-4
    check_relaxed(cost, a, 0.05, solve(cost, a, b, epsilon=0.05, relaxation=0.3), within)
