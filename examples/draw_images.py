"""Draw characters as PNG files: old/CLASS and new/CLASS to learn from, inbox/CLASS to answer.

    python draw_images.py characters

Characters of many scripts are drawn with the fonts that matplotlib brings, rotated, sheared, scaled, shifted and with
noise. The same program draws the same images.
"""

import sys
import unicodedata
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

SIZE, OLD_CLASSES, NEW_CLASSES, STRANGE_CLASSES = 64, 20, 4, 2
OLD_IMAGES, NEW_IMAGES, ASKED = 12, 3, 4
# Drawn so many times larger than wanted, and reduced after the changes.
OVERSAMPLING = 3
# Blocks of Unicode, first and last character.
SCRIPTS = {
    "old": {
        "Latin": (0x0041, 0x007A),
        "Greek": (0x0391, 0x03C9),
        "Cyrillic": (0x0410, 0x044F),
        "Armenian": (0x0531, 0x0586),
        "Canadian": (0x1401, 0x1676),
    },
    "strange": {"Hebrew": (0x05D0, 0x05EA), "Tifinagh": (0x2D30, 0x2D67)},
    "new": {"Georgian": (0x10D0, 0x10F0), "Nko": (0x07CA, 0x07EA), "Arabic": (0x0621, 0x064A), "Lao": (0x0E81, 0x0EAE)},
}
FOLDER = Path(matplotlib.get_data_path(), "fonts", "ttf")
FACES = [
    FOLDER / f"DejaVu{face}.ttf" for face in ("Sans", "Sans-Bold", "Sans-Oblique", "Serif", "Serif-Bold", "SansMono")
]
LETTERS = {face: set(FT2Font(str(face)).get_charmap()) for face in FACES}


def stroke(character, face, size):
    """A character in white on black, centred in a square."""
    image = Image.new("L", (size, size), 0)
    font = ImageFont.truetype(str(face), round(0.7 * size))
    ImageDraw.Draw(image).text((size / 2, size / 2), character, fill=255, font=font, anchor="mm")
    return np.asarray(image)


def letters(scripts, seen):
    """Letters of some scripts, evenly spaced, without those that look like an earlier one, such as Greek Alpha."""
    found = []
    for script, (first, last) in scripts.items():
        for code in range(first, last + 1):
            if code in LETTERS[FACES[0]] and unicodedata.category(chr(code)).startswith("L"):
                shape = stroke(chr(code), FACES[0], 24).tobytes()
                if shape not in seen:
                    seen.add(shape)
                    found.append((f"{script}/{unicodedata.name(chr(code)).title()}", chr(code)))
    chosen = np.linspace(0, len(found) - 1, min(OLD_CLASSES, len(found))).round().astype(int)
    return sorted(found[i] for i in chosen)


def draw(character, rng):
    """One image (SIZE, SIZE, 3), dark on light, in one of several fonts, with random changes."""
    able = [face for face in FACES if ord(character) in LETTERS[face]]
    large = OVERSAMPLING * SIZE
    image = Image.fromarray(stroke(character, able[rng.integers(len(able))], large))
    angle, shear = np.deg2rad(rng.uniform(-18, 18)), rng.uniform(-0.25, 0.25)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, shear], [0, 1]]) @ np.diag(1 / rng.uniform(0.75, 1.2, size=2))
    centre = large / 2
    shift = centre - matrix @ np.full(2, centre) + rng.uniform(-0.08, 0.08, size=2) * large
    coefficients = (matrix[0, 0], matrix[0, 1], shift[0], matrix[1, 0], matrix[1, 1], shift[1])
    image = image.transform((large, large), Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    ink = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BOX), dtype=np.float64) / 255
    ground, strength = rng.uniform(0.75, 1.0), rng.uniform(0.6, 1.0)
    grey = ground * (1 - strength * ink) + 0.04 * rng.standard_normal(ink.shape)
    return np.repeat((255 * np.clip(grey, 0, 1)).astype(np.uint8)[..., None], 3, axis=2)


def save(folder, images):
    """Write images (images, SIZE, SIZE, 3) as numbered PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")


def main(out):
    """Write all three folders and print how many images each has."""
    seen = set()
    characters = {part: letters(scripts, seen) for part, scripts in SCRIPTS.items()}

    def classes(part, most):
        """Some classes of a part, evenly spaced: name and drawings of each."""
        for name, character in characters[part][:: len(characters[part]) // most][:most]:
            rng = np.random.default_rng([0, ord(character)])
            yield name.rpartition("/")[2].lower(), [draw(character, rng) for _ in range(OLD_IMAGES + ASKED)]

    for place, (name, images) in enumerate(classes("old", OLD_CLASSES)):
        save(out / "old" / name, images[:OLD_IMAGES])
        if place % 4 == 0:
            save(out / "inbox" / name, images[OLD_IMAGES:])
    for name, images in classes("new", NEW_CLASSES):
        save(out / "new" / name, images[:NEW_IMAGES])
        save(out / "inbox" / name, images[-ASKED:])
    # Characters of no class that the model will know.
    strange = [images[:ASKED] for _, images in classes("strange", STRANGE_CLASSES)]
    save(out / "inbox" / "none of these", [image for some in strange for image in some])
    for part in ("old", "new", "inbox"):
        images = list((out / part).rglob("*.png"))
        print(f"{out / part}: {len(images)} images of {len({p.parent for p in images})} classes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
