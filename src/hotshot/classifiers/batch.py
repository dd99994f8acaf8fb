"""Predictions for a batch of samples jointly: the batch shows where the classes are, and in which proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hotshot.classifiers.classifier import snapshot
from hotshot.classifiers.confidence import LEVELS
from hotshot.errors import ParameterError
from hotshot.model.batch import BatchSolution, joint_inference
from hotshot.model.two_covariances import KnownClasses

# Samples that fit worse than all but this share of the samples of the classes count less, down to nothing.
DOUBTFUL = 0.05


class JointPredictions(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """Mixin of classifiers with calibrated Gaussians: joint predictions for a batch of samples."""

    classes_: np.ndarray
    known_: KnownClasses
    new_classes: Any

    def predict_proba_batch(self, X: Any) -> np.ndarray:
        """Probability of each class, for a batch of samples jointly.

        A folder of images or a night of recordings shows more than its samples one by one: where the classes lie, and
        how frequent each is. Nothing is assumed about the proportions; they are estimated. Samples that fit no class
        have little or no influence on the others. The probabilities of a sample depend on the whole batch; those of a
        batch of one are those of ``predict_proba``.

        Parameters
        ----------
        X : array (samples, V)
            The batch.

        Returns
        -------
        array (samples, classes)
            Probabilities, in the order of ``classes_``.

        See Also
        --------
        predict_batch : The most probable class of each sample.
        """
        model = snapshot(self)
        return np.asarray(model._solved(model._checked(X)).probabilities[0])

    def predict_batch(self, X: Any, *, reject: float | None = None, unknown: Any = None) -> np.ndarray:
        """Predict the most probable class of each sample of a batch, jointly; see ``predict_proba_batch``.

        Parameters
        ----------
        X : array (samples, V)
            The batch.
        reject : float, optional
            As in ``predict``: return ``unknown`` for samples that fit no class.
        unknown : object
            Prediction for rejected samples.

        Returns
        -------
        array (samples,)
            Labels.
        """
        model = snapshot(self)
        X = model._checked(X)
        answers = np.asarray(model.classes_[model._solved(X).probabilities[0].argmax(axis=1)])
        if reject is None:
            return answers
        scores, limits = model._outliers(model._in_space(X), reject)
        return replaced(answers, scores > limits, unknown)

    def _solved(self, X: np.ndarray) -> BatchSolution:
        """Joint inference over checked samples; a batch of one task."""
        if getattr(self, "known_", None) is None:
            raise ParameterError(
                f"{type(self).__name__} without base classes cannot predict a batch jointly: pass base (in the shell "
                "--base), or predict one by one."
            )
        placed = self._in_space(X).astype(np.float64)
        logits = self._finite_logits(X).astype(np.float64) / self.probability_temperature_
        means = self.known_.means.copy()
        for place, name in enumerate(self.classes_):
            # One Gaussian or several for each new class, none for base classes.
            own = self.target_labels_ == name
            if own.any():
                means[place] = self.calibrated_means_[own].mean(axis=0)
        arrays = (logits, placed, means, self.known_.sizes, self._weights(placed))
        is_new = self.new_classes
        groups = [np.flatnonzero(own) for own in (~is_new, is_new) if own.any()]
        return joint_inference(*(x[None] for x in arrays), ratio=float(self.known_.two.ratios.mean()), groups=groups)

    def _weights(self, placed: np.ndarray) -> np.ndarray:
        """Weights of samples in the space of the model, 0 to 1: less than 1 if few samples of a class fit worse."""
        scores = getattr(self, "alarm_scores_", None)
        if scores is None:
            return np.ones(len(placed))
        best, fit = self.known_.best(placed)
        levels = np.array([level for level in LEVELS if level <= DOUBTFUL])
        weights = (levels - levels[0]) / (levels[-1] - levels[0])
        return np.array(
            [np.interp(own, scores[place, : len(levels)], weights) for own, place in zip(fit, best, strict=True)]
        )


def replaced(answers: np.ndarray, rejected: np.ndarray, unknown: Any) -> np.ndarray:
    """Answers as objects, with `unknown`, whatever it is, where they are rejected."""
    answers = answers.astype(object)
    for row in np.flatnonzero(rejected):
        answers[row] = unknown
    return answers
