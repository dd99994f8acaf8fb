"""A model through a week: a class comes on Monday, more examples on Wednesday, and a class goes on Friday.

    python model_of_a_week.py

It also writes the samples to old.npz, new.npz, monday.npz and inbox.npz, for the same steps in the shell.
"""

import numpy as np

from hotshot import BaseClasses, HOTClassifier
from hotshot.base.embedded import load_bank

bank = load_bank("banking77")
names = bank.base.names[:15]
rows = np.isin(bank.base.labels, range(15))
X_old, y_old = bank.base.samples[rows], names[bank.base.labels[rows]]


def samples(classes, first, last):
    """Samples of new classes, by their number within the class."""
    rows = np.concatenate([np.flatnonzero(bank.y_novel == name)[first:last] for name in classes])
    return bank.X_novel[rows], bank.y_novel[rows]


def report(day, model, classes):
    """Print how many queries of these classes are right."""
    X, y = samples(classes, 10, 30)
    right = int(np.sum(model.predict(X) == y))
    print(f"{day}: {len(model.classes_)} classes; {right} of {len(y)} questions of {', '.join(classes)} are right")


first, added = ["card_arrival", "exchange_rate"], "request_refund"
model = HOTClassifier(BaseClasses.from_samples(X_old, y_old), include_base=True).fit(*samples(first, 0, 3))
report("Sunday", model, first)

model.add_classes(*samples([added], 0, 3))
report("Monday", model, [*first, added])

model.save("week.model", overwrite=True)  # the model file, without the base samples
base = BaseClasses.from_samples(X_old, y_old)
model = HOTClassifier.load("week.model", base=base)  # with its bank it can grow again

model.add_samples(*samples([added], 3, 6))
report("Wednesday", model, [*first, added])

model.remove_classes(["exchange_rate"])
report("Friday", model, ["card_arrival", added])

X, y = (np.concatenate(pair) for pair in zip(samples(["card_arrival"], 0, 3), samples([added], 0, 6), strict=True))
fresh = HOTClassifier(base, include_base=True).fit(X, y)
X, y = samples([*first, added], 10, 30)
largest = np.abs(model.predict_proba(X) - fresh.predict_proba(X)).max()
print(f"Largest difference of a probability to a model fitted afresh: {largest:.0e}")

parts = {"old": (X_old, y_old), "new": samples(first, 0, 3), "monday": samples([added], 0, 3), "inbox": (X, y)}
for name, (some, labels) in parts.items():
    np.savez(f"{name}.npz", X=some, y=labels)
