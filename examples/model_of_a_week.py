"""A model through a week: a class comes on Monday, another goes on Friday.

    python model_of_a_week.py

It also writes the samples to old.npz, new.npz, monday.npz and inbox.npz, for the shell.
"""

import numpy as np

from hotshot import BaseClasses, HOTClassifier
from hotshot.bank.embedded import load_bank

bank = load_bank("banking77")
rows = bank.base.labels < 15
X_old, y_old = bank.base.samples[rows], bank.base.names[bank.base.labels[rows]]


def samples(classes, first, last):
    """Samples of new classes, by their number within the class."""
    found = [np.flatnonzero(bank.y_novel == name)[first:last] for name in classes]
    return bank.X_novel[np.concatenate(found)], bank.y_novel[np.concatenate(found)]


def report(day, model, classes):
    """Print how many queries of these classes are right."""
    X, y = samples(classes, 10, 30)
    right = np.sum(model.predict(X) == y)
    n = len(model.classes_)
    print(f"{day}: {n} classes, {right} of {len(y)} right of {', '.join(classes)}")


first, added = ["card_arrival", "exchange_rate"], "request_refund"
base = BaseClasses.from_samples(X_old, y_old)
model = HOTClassifier(base, include_base=True).fit(*samples(first, 0, 3))
report("Sunday", model, first)

model.add_classes(*samples([added], 0, 3))
report("Monday", model, [*first, added])

model.save("week.model", overwrite=True)
model = HOTClassifier.load("week.model", base=base)  # with its bank it can grow again

model.add_samples(*samples([added], 3, 6))
report("Wednesday", model, [*first, added])

model.remove_classes(["exchange_rate"])
report("Friday", model, ["card_arrival", added])

(X1, y1), (X2, y2) = samples(["card_arrival"], 0, 3), samples([added], 0, 6)
fresh = HOTClassifier(base, include_base=True)
fresh.fit(np.concatenate([X1, X2]), np.concatenate([y1, y2]))
X, y = samples([*first, added], 10, 30)
largest = np.abs(model.predict_proba(X) - fresh.predict_proba(X)).max()
print(f"Largest difference of a probability to a model fitted afresh: {largest:.0e}")

np.savez("old.npz", X=X_old, y=y_old)
np.savez("inbox.npz", X=X, y=y)
for name, classes in {"new": first, "monday": [added]}.items():
    X, y = samples(classes, 0, 3)
    np.savez(f"{name}.npz", X=X, y=y)
