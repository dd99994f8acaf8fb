"""Pictures of the method on a task of three novel classes, from the functions that fit it.

`python docs/pictures.py` draws the picture of the README, `docs/pictures/overview.svg`; the page "How it works" draws
the others.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from hotshot import HOTClassifier
from hotshot.bank import PreparedBase
from hotshot.bank.embedded import load_bank
from hotshot.method.hot import FittedTasks, fit_tasks
from hotshot.method.transfer import class_plan

COLOURS = ("#1b6ca8", "#c8553d", "#3d8b5f")
GREY = "#8a8f98"
plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "svg.fonttype": "none", "svg.hashsalt": "hotshot"})


@dataclass(frozen=True)
class Task:
    """A one-shot task of novel classes, everything in the space of the bank."""

    base: PreparedBase
    fitted: FittedTasks
    epsilon: float
    classes: list[str]
    support: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray


def banking_task(classes: tuple[str, ...] = ("top_up_failed", "request_refund", "exchange_rate"), row: int = 0) -> Task:
    """One sample of each of three novel intents of banking77 as support, the other samples as queries."""
    bank = load_bank("banking77")
    samples = [bank.X_novel[bank.y_novel == name] for name in classes]
    base, method = HOTClassifier(bank.base).parts()
    place = base.transform
    support = place(np.stack([of_class[row] for of_class in samples]))
    rest = [np.delete(of_class, row, axis=0) for of_class in samples]
    labels = np.repeat(np.arange(len(classes)), [len(of_class) for of_class in rest])
    fitted = fit_tasks(base, support[None], np.arange(len(classes))[None], method, n_classes=len(classes))
    return Task(base, fitted, method.epsilon, list(classes), support, place(np.concatenate(rest)), labels)


def plain(name: str) -> str:
    """A class name as words."""
    return name.replace("_", " ")


def largest_lenders(task: Task, count: int) -> np.ndarray:
    """Base classes with the largest transfer weight to any class, those of one class together."""
    weights = task.fitted.transfer.weights[0]
    chosen = np.argsort(-weights.max(1))[:count]
    return chosen[np.lexsort((-weights[chosen].max(1), weights[chosen].argmax(1)))]


def heatmap(axes: Axes, values: np.ndarray, rows: list[str], columns: list[str], title: str, label: str) -> None:
    """A matrix with the names of its rows and columns."""
    image = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(columns)), columns, rotation=20, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(title)
    axes.figure.colorbar(image, ax=axes, label=label)


def draw_low_level(task: Task) -> Figure:
    """The low-level plans of the nearest and of the farthest base class: samples to support samples."""
    cost = task.fitted.transfer.cost[0].sum(1)
    figure, both = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axes, b, which in zip(both, (cost.argmin(), cost.argmax()), ("nearest", "farthest"), strict=True):
        plan = class_plan(task.base, task.support[None], int(b), task.epsilon)[0]
        order = np.argsort(plan.argmax(1), kind="stable")
        columns = [plain(name) for name in task.classes]
        title = f"Low-level plan, {which} base class:\n{plain(task.base.names[b])}"
        heatmap(axes, plan[order], [], columns, title, "mass")
        axes.set_ylabel(f"its {len(plan)} samples")
        axes.set_xlabel("support samples")
    return figure


def draw_plan(task: Task, count: int = 14) -> Figure:
    """The learned cost and the high-level plan of the largest lenders."""
    shown = largest_lenders(task, count)
    rows, columns = [plain(task.base.names[b]) for b in shown], [plain(name) for name in task.classes]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    heatmap(left, task.fitted.transfer.cost[0][shown], rows, columns, "Learned cost (eq. 9)", "cost")
    heatmap(right, task.fitted.transfer.weights[0][shown], [], columns, "Transfer weights (eq. 6)", "weight")
    return figure


def plane(task: Task) -> np.ndarray:
    """Two orthonormal directions (2, V) in which all logit differences of the three classes lie."""
    weights = task.fitted.theta[0, :, :-1]
    return np.linalg.qr((weights[1:] - weights[0]).T)[0].T


def draw_gaussians(axes: Axes, task: Task) -> None:
    """Support samples, lent means and calibrated Gaussians with the decision of the head, exact in their plane."""
    directions = plane(task)
    means = task.fitted.gaussians.means[0] @ directions.T
    lent = task.fitted.transfer.weights[0].T @ task.base.means @ directions.T
    covariances = directions @ task.fitted.gaussians.mixed_covariances(task.base)[0] @ directions.T
    support, queries = task.support @ directions.T, task.queries @ directions.T
    seen = np.concatenate([support, queries, means])
    low, high = seen.min(0) - 0.08, seen.max(0) + 0.08
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300)), -1)
    theta = task.fitted.theta[0]
    # What the logits have besides lies across the plane and is the same for all classes.
    logits = grid @ (theta[:, :-1] @ directions.T).T + theta[:, -1]
    axes.contourf(
        grid[..., 0], grid[..., 1], logits.argmax(-1), levels=[-0.5, 0.5, 1.5, 2.5], colors=COLOURS, alpha=0.13
    )
    for k, colour in enumerate(COLOURS):
        axes.scatter(*queries[task.query_labels == k].T, s=9, color=colour, alpha=0.55, linewidths=0)
        variances, vectors = np.linalg.eigh(covariances[k])
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        width, height = 2 * np.sqrt(variances[::-1])
        for radius in (1, 2):
            axes.add_patch(
                Ellipse(means[k], radius * width, radius * height, angle=angle, fill=False, ec=colour, lw=1.2)
            )
        axes.annotate("", means[k], support[k], arrowprops={"arrowstyle": "->", "color": "black", "lw": 1})
        axes.scatter(*support[k], marker="*", s=130, color=colour, edgecolors="black", zorder=3)
        axes.scatter(*lent[k], marker="s", s=28, color="white", edgecolors=colour, zorder=3)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")


def draw_flows(axes: Axes, task: Task, count: int = 9) -> None:
    """The largest lenders beside the novel classes; the width of a line is its transfer weight."""
    weights, shown = task.fitted.transfer.weights[0], largest_lenders(task, count)
    left = np.linspace(1, 0, count)
    right = np.linspace(0.88, 0.12, len(task.classes))
    for y, b in zip(left, shown, strict=True):
        axes.text(-0.03, y, plain(task.base.names[b]), ha="right", va="center", color="#30343a", fontsize=8.5)
        for k, colour in enumerate(COLOURS):
            t = np.linspace(0, 1, 40)
            curve = y + (right[k] - y) * (3 * t**2 - 2 * t**3)
            axes.plot(t, curve, color=colour, lw=60 * weights[b, k], alpha=0.45, solid_capstyle="butt")
    for y, name, colour in zip(right, task.classes, COLOURS, strict=True):
        axes.text(1.03, y, plain(name), ha="left", va="center", color=colour, fontsize=10, fontweight="bold")
    axes.set_xlim(-1.15, 1.75)
    axes.set_ylim(-0.08, 1.08)
    axes.axis("off")


def draw_overview(task: Task) -> Figure:
    """What lends to what, and the classifier that follows."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1.25, 1), layout="constrained")
    draw_flows(left, task)
    left.set_title("1. Known classes lend to new classes with one example each")
    draw_gaussians(right, task)
    right.set_title("2. The Gaussians that result train the classifier")
    right.set_xlabel("★ the example   □ what is lent   ○ Gaussian   • new samples", fontsize=8.5)
    return figure


if __name__ == "__main__":
    place = Path(__file__).parent / "pictures"
    place.mkdir(exist_ok=True)
    figure = draw_overview(banking_task())
    figure.savefig(place / "overview.svg", metadata={"Date": None}, facecolor="white")
