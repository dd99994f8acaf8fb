"""Bad input raises one named error where it enters; odd but valid input is taken."""

import numpy as np
import pytest

from hotshot.errors import InputError, NamespaceError, ParameterError
from hotshot.transport import Status, solve

COST = np.array([[0.0, 0.4], [0.9, 0.1], [0.3, 0.6]])
THIRDS, HALVES = np.full(3, 1 / 3), np.full(2, 0.5)

# No numbers, whatever they are for.
NO_NUMBERS = {
    "string": "uniform",
    "ragged list": [[0.5], [0.2, 0.3]],
    "array of strings": np.array([["a", "b"]]),
    "array of objects": np.array([[None, 1.0]]),
    "dates": np.array([["2022-11-28"]], dtype="datetime64[D]"),
    "complex": COST + 1j,
}
BAD_COSTS = NO_NUMBERS | {
    "None": None,
    "a number": 0.5,
    "one row": COST[0],
    "no rows": COST[:0],
    "no columns": COST[:, :0],
    "empty list": [],
}
BAD_MARGINALS = NO_NUMBERS | {
    "too short": np.full(2, 0.5),
    "too long": np.full(4, 0.25),
    "a batch for one problem": np.full((2, 3), 1 / 3),
    "a column": np.full((3, 1), 1 / 3),
}


@pytest.mark.parametrize("cost", BAD_COSTS.values(), ids=BAD_COSTS)
def test_bad_costs(cost):
    with pytest.raises(InputError, match="cost"):
        solve(cost, epsilon=0.1)


@pytest.mark.parametrize("a", BAD_MARGINALS.values(), ids=BAD_MARGINALS)
def test_bad_marginals(a):
    with pytest.raises(InputError, match=r"^a "):
        solve(COST, a, epsilon=0.1)
    with pytest.raises(InputError, match=r"^b "):
        solve(COST.T, b=a, epsilon=0.1)


BAD_PARAMETERS = {
    "epsilon": [0, -0.01, np.nan, np.inf, "0.01", True, None, [0.01], np.array([0.01])],
    "method": ["simplex", "Newton", None, 1, ["newton"]],
    "tolerance": [0, -1e-9, np.nan, np.inf, "1e-9", True, [1e-9]],
    "max_iterations": [0, -1, 1.5, np.nan, np.inf, "10", True, [10]],
    "relaxation": [0, -1.0, np.nan, np.inf, "1", True, [1.0], np.ones(2), np.array("a")],
}


def test_numbers_of_any_kind_are_taken():
    assert solve(COST, epsilon=np.float32(0.1), max_iterations=np.int64(50), tolerance=1).converged
    assert solve(COST, epsilon=1, max_iterations=50.0).converged


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, id=f"{name}={value!r}") for name in BAD_PARAMETERS for value in BAD_PARAMETERS[name]],
)
def test_bad_parameters(name, value):
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        solve(COST, **{"epsilon": 0.1, name: value})


def test_one_array_library_per_call():
    torch = pytest.importorskip("torch")
    for cost, a in [(COST, torch.full((3,), 1 / 3)), (torch.asarray(COST), THIRDS)]:
        with pytest.raises(NamespaceError, match=r"numpy\.ndarray, torch\.Tensor"):
            solve(cost, a, epsilon=0.1)


GOOD_INPUT = {
    "lists": (COST.tolist(), THIRDS.tolist(), HALVES.tolist()),
    "tuples": (tuple(map(tuple, COST)), tuple(THIRDS), tuple(HALVES)),
    "a list beside an array": (COST, THIRDS.tolist(), HALVES),
    "float32 marginals": (COST, THIRDS.astype("float32"), HALVES.astype("float32")),
    "integer marginals": (COST, np.full(3, 2), np.full(2, 3)),
    "read-only": (np.broadcast_to(COST, (3, 2)), np.broadcast_to(1 / 3, 3), np.broadcast_to(0.5, 2)),
    "not contiguous": (np.asfortranarray(COST), np.repeat(THIRDS, 2)[::2], HALVES[::-1]),
}


@pytest.mark.parametrize("given", GOOD_INPUT.values(), ids=GOOD_INPUT)
def test_odd_but_valid_input(given):
    solution = solve(*given, epsilon=0.1)
    plan = solution.plan / solution.plan.sum()
    np.testing.assert_allclose(plan, solve(COST, epsilon=0.1).plan, atol=1e-7)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("int32", "float64"),
     ("uint8", "float64"), ("bool", "float64"), ("longdouble", "float64")],
)  # fmt: skip
def test_dtypes(given, kept):
    cost = np.array([[0, 1], [1, 0], [1, 1]]).astype(given)
    solution = solve(cost, epsilon=0.5)
    assert solution.status == Status.CONVERGED
    assert solution.plan.dtype == np.dtype(kept)
    np.testing.assert_allclose(solution.plan, solve(cost.astype("float64"), epsilon=0.5).plan, atol=1e-5)
