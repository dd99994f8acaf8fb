"""The whole method for a batch of tasks: targets, transfer weights, calibrated Gaussians, head.

The estimators call it with a batch of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hotshot.arrays import NO_OVERFLOW_WARNINGS, Array, like, map_arrays, namespace
from hotshot.bank import PreparedBase
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.method.calibration import CalibratedGaussians, calibrate, class_targets
from hotshot.method.heads import HEADS
from hotshot.method.heads.problem import Training, check_finite
from hotshot.method.hierarchy import Transfer, transfer_weights
from hotshot.method.parameters import Method

# Parameters whose extreme values overflow.
NUMBERS = ("alpha", "C", "n_generated", "support_weight")


@dataclass(frozen=True)
class FittedTasks:
    """Classifiers of a batch of tasks, with their transfer weights and calibrated Gaussians.

    ``theta`` is (tasks, N, V + 1), intercepts last; ``converged`` (tasks,) tells which heads reached their minimum;
    ``slopes`` are those of ``FittedHeads``.
    """

    theta: Array
    converged: Array
    transfer: Transfer
    gaussians: CalibratedGaussians
    slopes: Array | None

    def decision(self, queries: Array) -> Array:
        """Logits (tasks, queries, N) of queries (tasks, queries, V) in the space of the bank."""
        xp = namespace(queries)
        return queries @ xp.matrix_transpose(self.theta[..., :-1]) + self.theta[:, None, :, -1]


def calibrate_tasks(
    base: PreparedBase, support: Array, labels: Array, method: Method, *, n_classes: int, keep_low_plans: bool = False
) -> tuple[Transfer, CalibratedGaussians]:
    """Transfer weights (eq. 6) and calibrated Gaussians (eq. 10) of each task; see ``fit_tasks``."""
    xp = namespace(support, labels, base.means)
    means, shots = class_targets(support, labels, n_classes)
    if method.per == "class":
        all_classes = like(np.arange(n_classes), labels)
        targets, target_labels = means, xp.broadcast_to(all_classes, shots.shape)
    else:
        targets, target_labels = support, labels
        shots = xp.stack([xp.take(shots[i, :], labels[i, :]) for i in range(labels.shape[0])])
    transfer = transfer_weights(base, targets, method, keep_low_plans)
    return transfer, calibrate(base, targets, target_labels, shots, transfer.weights, method)


@NO_OVERFLOW_WARNINGS
def fit_tasks(
    base: PreparedBase,
    support: Array,
    labels: Array,
    method: Method,
    *,
    n_classes: int,
    seeds: Sequence[int] = (),
    keep_low_plans: bool = False,
) -> FittedTasks:
    """Fit one classifier per task.

    Parameters
    ----------
    support : array (tasks, S, V)
        Support samples in the space of the bank.
    labels : integer array (tasks, S)
        Their classes, from 0 to n_classes - 1, each with at least one sample.
    seeds : sequence of seeds, one per task
        Seeds of the sampled head.
    """
    transfer, gaussians = calibrate_tasks(
        base, support, labels, method, n_classes=n_classes, keep_low_plans=keep_low_plans
    )
    try:
        fitted = HEADS[method.head].fit(Training(base, gaussians, support, labels, n_classes, method, seeds))
        check_finite(fitted.theta)
    except (FloatingPointError, ValueError, RuntimeError) as error:
        # NumPy and torch each have a LinAlgError.
        if not isinstance(error, FloatingPointError) and "LinAlgError" not in type(error).__name__:
            raise
        raise _out_of_range(base, method) from error
    return FittedTasks(fitted.theta, fitted.converged, transfer, gaussians, fitted.slopes)


def _out_of_range(base: PreparedBase, method: Method) -> HotshotError:
    """The error for numbers that are not finite: in the bank, or because of the parameters."""
    xp, sound = namespace(base.means), []
    map_arrays(base, lambda x: sound.append(bool(xp.all(xp.isfinite(x)))))
    if not all(sound):
        return InputError("The base classes hold NaN or infinity: build the bank again.")
    given = ", ".join(f"{name}={getattr(method, name):g}" for name in NUMBERS)
    return ParameterError(
        f"The head leaves the range of {base.means.dtype} with {given}: choose values nearer to the defaults, rescale "
        "the features, or pass them as float64."
    )
