"""Algorithm 1 of the paper for a batch of tasks; the estimators call it with a batch of one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hotshot.arrays import NO_OVERFLOW_WARNINGS
from hotshot.bank import PreparedBase
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians, calibrate, class_targets
from hotshot.method.heads import HEADS, Training
from hotshot.method.transfer import Transfer, transfer_weights

# Parameters whose extreme values overflow.
NUMBERS = ("alpha", "C", "n_generated", "support_weight")


@dataclass(frozen=True)
class FittedTasks:
    """Classifiers of a batch of tasks, with their transfer weights and calibrated Gaussians.

    ``theta`` is (tasks, N, V + 1), intercepts last; ``converged`` (tasks,) tells which heads reached their minimum;
    ``slopes`` (tasks, G + S, N) are the derivatives of the loss in the logits of means and support, or None.
    """

    theta: np.ndarray
    converged: np.ndarray
    slopes: np.ndarray | None
    transfer: Transfer
    gaussians: CalibratedGaussians

    def decision(self, queries: np.ndarray) -> np.ndarray:
        """Logits (tasks, queries, N) of queries (tasks, queries, V) in the space of the bank."""
        return np.asarray(queries @ self.theta[..., :-1].swapaxes(1, 2) + self.theta[:, None, :, -1])


@NO_OVERFLOW_WARNINGS
def fit_tasks(
    base: PreparedBase,
    support: np.ndarray,
    labels: np.ndarray,
    method: Method,
    *,
    n_classes: int,
    seeds: Sequence[int] = (),
) -> FittedTasks:
    """Fit one classifier per task, to support samples (tasks, S, V) in the space of the bank.

    Their labels (tasks, S) are from 0 to n_classes - 1, each with at least one sample. The sampled head takes a seed
    for each task.
    """
    transfer, gaussians = calibrate_tasks(base, support, labels, method, n_classes=n_classes)
    # Eq. 12: the head.
    training = Training(base, gaussians, support, labels, n_classes, method, seeds)
    try:
        theta, converged, slopes = HEADS[method.head].fit(training)
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _out_of_range(base, method) from error
    if not np.isfinite(theta).all():
        raise _out_of_range(base, method)
    return FittedTasks(theta, converged, slopes, transfer, gaussians)


def calibrate_tasks(
    base: PreparedBase, support: np.ndarray, labels: np.ndarray, method: Method, *, n_classes: int
) -> tuple[Transfer, CalibratedGaussians]:
    """Transfer weights and calibrated Gaussians of each task, for any head; see ``fit_tasks``."""
    # What is transported: class means or samples, with their classes and the shots of these.
    targets, shots = class_targets(support, labels, n_classes)
    target_labels = np.broadcast_to(np.arange(n_classes), shots.shape)
    if method.per == "sample":
        targets, target_labels, shots = support, labels, np.take_along_axis(shots, labels, axis=1)
    # Eq. 8, the low-level transport; eq. 9, the learned cost; eq. 6, the high-level transport.
    transfer = transfer_weights(base, targets, method)
    # Eq. 10: calibrated means and covariances.
    return transfer, calibrate(base, targets, target_labels, shots, transfer.weights, method)


def _out_of_range(base: PreparedBase, method: Method) -> HotshotError:
    """The error for numbers that are not finite: in the bank, or because of the parameters."""
    arrays = (base.means, base.spectrum, base.ones, base.covariances.variances, *(b.units for b in base.buckets))
    if not all(np.isfinite(x).all() for x in arrays):
        return InputError("The base classes hold NaN or infinity: build the bank again.")
    given = ", ".join(f"{name}={getattr(method, name):g}" for name in NUMBERS)
    return ParameterError(
        f"The head leaves the range of {base.means.dtype} with {given}: choose values nearer to the defaults, rescale "
        "the features, or pass them as float64."
    )
