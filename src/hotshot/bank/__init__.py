r"""Base classes: the bank of many-sample classes that novel classes borrow from.

A bank keeps the samples of its classes, in memory or mapped from a folder. All that depends only on the bank and on the
transform of its features, such as the axes, the means and covariances of eq. 2 and the sample weights, is computed once
and kept with it.
"""

from hotshot.bank.bank import BaseClasses
from hotshot.bank.building import ClassStatistics
from hotshot.bank.covariances import Bucket, class_covariances, class_means, pooled_covariance
from hotshot.bank.space import PreparedBase, Space, classifier_weights
from hotshot.bank.store import is_bank

__all__ = [
    "BaseClasses", "Bucket", "ClassStatistics", "PreparedBase", "Space", "class_covariances", "class_means",
    "classifier_weights", "is_bank", "pooled_covariance",
]  # fmt: skip
