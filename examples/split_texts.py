"""Divide labelled texts: old classes, three texts of each new class, and the rest of these.

    python split_texts.py helpdesk.csv child_seat gift_voucher

writes old.csv, new.csv and rest.csv to the working folder.
"""

import csv
import sys

SHOTS = 3


def main(path, new_classes):
    """Write the three files and print how many texts each has."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    unknown = set(new_classes) - {row["label"] for row in rows}
    if unknown:
        raise SystemExit(f"{path} has no class {', '.join(sorted(unknown))}.")
    files = {"old.csv": [], "new.csv": [], "rest.csv": []}
    seen = dict.fromkeys(new_classes, 0)
    for row in rows:
        label = row["label"]
        if label not in seen:
            files["old.csv"].append(row)
            continue
        seen[label] += 1
        files["new.csv" if seen[label] <= SHOTS else "rest.csv"].append(row)
    for name, some in files.items():
        with open(name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["text", "label"])
            writer.writeheader()
            writer.writerows(some)
        print(f"{name}: {len(some)} texts of {len({row['label'] for row in some})} classes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
