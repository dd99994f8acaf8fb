"""Figure 7 of the appendix: novel samples mixed from base means by known weights, and whether these are found again."""

from dataclasses import dataclass

import numpy as np

from hotshot.bank import Space
from hotshot.evaluation.tables import Table, interval
from hotshot.formatting import readable
from hotshot.paper.figures import weights
from hotshot.paper.findings import Findings, claim
from hotshot.paper.setting import Setting
from hotshot.transport import pairwise_cost, solve

# Of the paper: base classes, shape of the gamma distribution of the weights, strength of the entropy.
CLASSES, SHAPE, EPSILON = 20, 0.8, 0.01
# A strength that means the same on features of any scale: this share of the mean cost.
SHARE_OF_COST = 0.1
MOST_TASKS = 500
FREE_LUNCH, EQUAL = "Free-Lunch", "Equal weights"
OT_PUBLISHED = f"High-level OT, epsilon {EPSILON:g}"
SCALED_EPSILON = f"{SHARE_OF_COST:.0%} of the mean cost"
OT_SCALED = f"High-level OT, epsilon {SCALED_EPSILON}"


@dataclass(frozen=True)
class Mixture:
    """A task of known weights: `classes` (b,) chosen, `truth` (b, N), and `learned` (b, N) by method."""

    classes: np.ndarray
    truth: np.ndarray
    learned: dict[str, np.ndarray]


def run(setting: Setting) -> Findings:
    """How well each method finds the weights, over many mixtures, and a picture of the first."""
    base = setting.features.base.prepare(Space(power=1.0, normalize=None, n_components=None))
    means = np.asarray(base.means, dtype=np.float64)
    rng = np.random.default_rng(setting.seed)
    mixtures = [draw_mixture(means, setting.ways, rng) for _ in range(min(setting.tasks, MOST_TASKS))]
    first = mixtures[0]
    correlations, errors = (
        {name: np.array([score(m.truth, m.learned[name]) for m in mixtures]) for name in first.learned}
        for score in (correlation, total_error)
    )
    table = Table(
        f"Learned and true weights, {len(mixtures)} tasks of {setting.ways} mixtures of "
        f"{len(first.classes)} base means of {setting.features.name}",
        ("method", "correlation", "sum of absolute errors"),
        tuple(
            (name, None if name == EQUAL else interval(correlations[name]), interval(errors[name])) for name in errors
        ),
        ("The error is between 0 and 2. Means are of the raw features, without a power transform.",),
    )
    figures = {
        f"toy-weights-{n + 1}": weights(
            first.truth[:, n],
            {FREE_LUNCH: first.learned[FREE_LUNCH][:, n], "high-level OT": first.learned[OT_SCALED][:, n]},
            [readable(name) for name in base.names[first.classes]],
            title=f"True and learned weights, mixture {n + 1}, {setting.features.title}",
        )
        for n in range(min(2, setting.ways))
    }
    found, error = ({name: f"{own.mean():.2f}" for name, own in kind.items()} for kind in (correlations, errors))
    words = (
        f"Correlation with the true weights: transport {found[OT_SCALED]} ({found[OT_PUBLISHED]} with the published "
        f"epsilon), Free-Lunch {found[FREE_LUNCH]}. Sum of absolute errors: transport {error[OT_SCALED]} "
        f"({error[OT_PUBLISHED]}), Free-Lunch {error[FREE_LUNCH]}, equal weights {error[EQUAL]}."
    )
    claims = []
    for epsilon, name in (("as published", OT_PUBLISHED), (SCALED_EPSILON, OT_SCALED)):
        closer = {
            "correlation": interval(correlations[name] - correlations[FREE_LUNCH], signed=True),
            "reduction of the error": interval(errors[FREE_LUNCH] - errors[name], signed=True),
        }
        text = f"Weights of the high-level transport are closer to the truth than Free-Lunch's, epsilon {epsilon}."
        claims.append(claim(text, closer))
    return Findings([words], [table], figures, claims=claims)


def draw_mixture(means: np.ndarray, ways: int, rng: np.random.Generator) -> Mixture:
    """Mix some base means (B, V) by gamma weights, and learn the weights from the mixtures."""
    classes = rng.choice(len(means), min(CLASSES, len(means)), replace=False)
    truth = rng.gamma(SHAPE, size=(len(classes), ways))
    truth /= truth.sum(axis=0)
    cost = pairwise_cost(means[classes], truth.T @ means[classes], "euclidean")
    scaled, published = (
        np.asarray(ways * solve(cost, epsilon=epsilon).raise_for_status().plan)
        for epsilon in (SHARE_OF_COST * float(cost.mean()), EPSILON)
    )
    nearest_two = (cost.argsort(axis=0).argsort(axis=0) < 2) / 2
    equal = np.full_like(truth, 1 / len(classes))
    return Mixture(classes, truth, {OT_SCALED: scaled, OT_PUBLISHED: published, FREE_LUNCH: nearest_two, EQUAL: equal})


def correlation(truth: np.ndarray, learned: np.ndarray) -> float:
    """Mean correlation of the columns of two arrays (b, N); 0 where one does not vary."""
    a, b = (x - x.mean(axis=0) for x in (truth, learned))
    norms = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return float(np.mean(np.divide((a * b).sum(axis=0), norms, out=np.zeros(len(norms)), where=norms > 0)))


def total_error(truth: np.ndarray, learned: np.ndarray) -> float:
    """Mean sum of absolute differences of the columns of two arrays (b, N)."""
    return float(np.abs(truth - learned).sum(axis=0).mean())
