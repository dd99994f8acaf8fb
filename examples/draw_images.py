"""Draw characters as PNG files: old/CLASS and new/CLASS to learn from, inbox/CLASS to answer.

    python draw_images.py characters

They are hotshot's own synthetic characters, drawn with the fonts that matplotlib brings.
"""

import sys
from pathlib import Path

from PIL import Image

from hotshot.images.datasets.glyphs import make_glyphs

SIZE, OLD_CLASSES, NEW_CLASSES, STRANGE_CLASSES = 64, 20, 4, 2
OLD_IMAGES, NEW_IMAGES, ASKED = 12, 3, 4


def save(folder, images):
    """Write images (images, size, size, 3) as numbered PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")


def main(out):
    """Write all three folders and print how many images each has."""
    per_class = OLD_IMAGES + ASKED
    splits = make_glyphs(SIZE, per_class, most_classes=OLD_CLASSES, seed=0)

    def classes(split, most):
        """Some classes of a split, evenly spaced: name and drawings of each."""
        drawings = splits[split].images.reshape(-1, per_class, SIZE, SIZE, 3)
        names = [name.rpartition("/")[2].lower() for name in splits[split].names]
        return list(zip(names, drawings, strict=True))[:: len(names) // most][:most]

    for place, (name, images) in enumerate(classes("base", OLD_CLASSES)):
        save(out / "old" / name, images[:OLD_IMAGES])
        if place % 4 == 0:
            save(out / "inbox" / name, images[OLD_IMAGES:])
    for name, images in classes("novel", NEW_CLASSES):
        save(out / "new" / name, images[:NEW_IMAGES])
        save(out / "inbox" / name, images[-ASKED:])
    # Characters of no class that the model will know.
    strange = [images[:ASKED] for _, images in classes("val", STRANGE_CLASSES)]
    save(out / "inbox" / "none of these", [image for some in strange for image in some])
    for part in ("old", "new", "inbox"):
        images = list((out / part).rglob("*.png"))
        print(f"{out / part}: {len(images)} images of {len({p.parent for p in images})} classes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
