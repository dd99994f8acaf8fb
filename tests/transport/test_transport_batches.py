"""A batch is its problems, each by itself: shapes, padding, blocks, and faults that stay where they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.arrays import to_numpy
from hotshot.transport import Status, solve

from .checker import check_solution
from .generators import padded, problems, random_problem

FIELDS = ("plan", "cost", "marginal_error", "status")
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


@DTYPES
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)], ids=str)
def test_a_batch_of_any_shape_equals_its_problems(xp, batch, dtype):
    p = random_problem(rows=20, columns=5, epsilon=0.01, batch=batch).astype(dtype)
    cost, a, b = (xp.asarray(x) for x in (p.cost, p.a, p.b))
    together, within = solve(cost, a, b, epsilon=0.01), 1e-8 if dtype == "float64" else 2e-5
    check_solution(cost, a, b, 0.01, together)
    for index in np.ndindex(*batch):
        alone = solve(p.cost[index], p.a[index], p.b[index], epsilon=0.01)
        np.testing.assert_allclose(to_numpy(together.plan)[index], alone.plan, atol=within)


def test_more_problems_than_fit_a_block():
    p = random_problem(rows=600, columns=20, batch=(25,))
    check_solution(p.cost, p.a, p.b, p.epsilon, solve(p.cost, p.a, p.b, epsilon=p.epsilon))


@pytest.mark.parametrize(("method", "lowest_epsilon"), [("newton", 1e-3), ("sinkhorn", 0.1)])
@pytest.mark.parametrize("filler", [0.0, -10.0, 1e3])
@given(parts=st.lists(problems(), min_size=1, max_size=4), height=st.floats(0, 1))
def test_padding_without_mass_changes_nothing(parts, height, filler, method, lowest_epsilon):
    epsilon = lowest_epsilon ** (1 - height)
    batch = padded(parts, filler)
    solution = solve(batch.cost, batch.a, batch.b, epsilon=epsilon, method=method)
    check_solution(batch.cost, batch.a, batch.b, epsilon, solution)
    for k, p in enumerate(parts):
        rows, columns = p.cost.shape
        alone = solve(p.cost, p.a, p.b, epsilon=epsilon)
        np.testing.assert_allclose(solution.plan[k, :rows, :columns], alone.plan, atol=1e-7)


FAULTS = {
    "NaN in the cost": ("cost", (0, 0), np.nan, Status.NOT_FINITE),
    "infinity in the cost": ("cost", (1, 1), np.inf, Status.NOT_FINITE),
    "minus infinity in the cost": ("cost", (2, 0), -np.inf, Status.NOT_FINITE),
    "NaN in a": ("a", 0, np.nan, Status.NOT_FINITE),
    "infinity in b": ("b", 1, np.inf, Status.NOT_FINITE),
    "infinities that cancel": ("a", slice(2), [np.inf, -np.inf], Status.NOT_FINITE),
    "negative mass": ("a", 3, -0.1, Status.BAD_MASS),
    "totals that differ": ("b", 2, 7.0, Status.BAD_MASS),
    "no mass in a": ("a", slice(None), 0.0, Status.BAD_MASS),
}


@DTYPES
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_a_status_no_plan_and_infinite_cost(xp, fault, dtype):
    p = random_problem(rows=15, columns=4, batch=(3,)).astype(dtype)
    status = _spoil(p, fault, problem=1)
    cost, a, b = (xp.asarray(x) for x in (p.cost, p.a, p.b))
    solution = solve(cost, a, b, epsilon=p.epsilon)
    assert to_numpy(solution.status).tolist() == [Status.CONVERGED, status, Status.CONVERGED]
    assert not solution.converged
    assert (to_numpy(solution.plan)[1] == 0).all()
    assert to_numpy(solution.cost)[1] == to_numpy(solution.marginal_error)[1] == np.inf
    healthy = [0, 2]
    parts = {name: to_numpy(getattr(solution, name))[healthy] for name in (*FIELDS, "iterations")}
    check_solution(p.cost[healthy], p.a[healthy], p.b[healthy], p.epsilon, type(solution)(**parts))


@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
@DTYPES
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.01, 0.1])
@pytest.mark.parametrize("fault", ["NaN in the cost", "totals that differ"])
def test_a_fault_leaves_the_others_bit_for_bit(fault, epsilon, dtype, method):
    if method == "sinkhorn":
        epsilon *= 100
    for seed, offset in enumerate([0, 0, 0, 0, 50]):
        p = random_problem(rows=30, columns=4, epsilon=epsilon, seed=seed, batch=(5,)).astype(dtype)
        p.cost[...] += offset
        # Marginals may be one for all.
        a, b = (p.a[0], p.b[0]) if seed > 2 and fault == "NaN in the cost" else (p.a, p.b)
        before = solve(p.cost, a, b, epsilon=epsilon, method=method)
        _spoil(p, fault, problem=2)
        after = solve(p.cost, a, b, epsilon=epsilon, method=method)
        for name in FIELDS:
            x, y = (getattr(solution, name)[[0, 1, 3, 4]] for solution in (before, after))
            np.testing.assert_array_equal(x, y, err_msg=name)


def _spoil(p, fault, problem):
    name, index, value, status = FAULTS[fault]
    getattr(p, name)[problem][index] = value
    return status
