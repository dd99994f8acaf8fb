"""The score of a bank on samples without labels, in words and as a table."""

from hotshot.estimators.bank_score import HARMS, HELPS, NEUTRAL, BankScore
from hotshot.evaluation.tables import Number, Table
from hotshot.formatting import count, shortened

MOST_CLASSES = 10
VERDICTS = {
    HELPS: "The base classes help",
    NEUTRAL: "There is no clear evidence that the base classes help or harm",
    HARMS: "The base classes do not help",
}


def pool_sentences(score: BankScore, labelled: bool) -> list[str]:
    """The verdict, the expected gains, how they were found, and advice."""
    gains = ", ".join(
        f"{Number(gain.points, gain.half_width, signed=True, places=1)} at {count(gain.shots, 'shot')}"
        for gain in score.gains
    )
    found = [
        f"{VERDICTS[score.verdict]}: expected gain of H-OT over nearest centroids in points, {gains}.",
        f"Measured on clusters of {count(score.samples, 'sample')}, "
        + (
            "corrected on held-out base classes."
            if score.held_out
            else "not corrected on held-out base classes: the true gain is usually larger."
        ),
    ]
    if labelled:
        found.append("The labels of the pool are ignored.")
    if score.settings:
        found.append(
            "To be safe, use nearest centroids: centroid-cl2n, or in Python HOTClassifier(base).for_pool(X_pool)."
        )
    else:
        found.append("Use H-OT with its defaults.")
    return found


def pool_table(score: BankScore) -> Table:
    """The base classes that lend most, with their shares in percent."""
    rows = tuple(
        (shortened(str(carrier.name)), Number(100 * carrier.share, places=1), Number(100 * carrier.nearest, places=1))
        for carrier in score.carriers[:MOST_CLASSES]
    )
    shown = f"the first {len(rows)} of {len(score.carriers)}" if len(rows) < len(score.carriers) else "all"
    columns = ("base class", "share of what is lent in %", "nearest to so much of the pool in %")
    return Table(f"Base classes that lend most, {shown}", columns, rows)
