"""Synthetic images: characters of many scripts, rendered with the fonts of matplotlib.

Scripts are split into base, validation and novel ones, like the alphabets of Omniglot, so that the path from pixels to
few-shot accuracy can be tried without a download. The same seed renders the same images.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hotshot.arrays import check_number
from hotshot.errors import RunError
from hotshot.images.datasets.decoding import DecodedSplit

# Blocks of Unicode, first and last character.
SCRIPTS: dict[str, dict[str, tuple[int, int]]] = {
    "base": {
        "Latin": (0x0041, 0x007A),
        "Greek": (0x0391, 0x03C9),
        "Cyrillic": (0x0410, 0x044F),
        "Armenian": (0x0531, 0x0586),
        "Canadian": (0x1401, 0x1676),
    },
    "val": {"Hebrew": (0x05D0, 0x05EA), "Tifinagh": (0x2D30, 0x2D67)},
    "novel": {
        "Georgian": (0x10D0, 0x10F0),
        "Nko": (0x07CA, 0x07EA),
        "Arabic": (0x0621, 0x064A),
        "Lao": (0x0E81, 0x0EAE),
    },
}
FACES = tuple(f"DejaVu{face}" for face in ("Sans", "Sans-Bold", "Sans-Oblique", "Serif", "Serif-Bold", "SansMono"))
# Drawn so many times larger than wanted, and reduced after the jitter.
OVERSAMPLING = 3
# Side at which all of them take 3 GB.
LARGEST = 256


def make_glyphs(
    size: int = 32, per_class: int = 20, *, most_classes: int | None = None, seed: int = 0
) -> dict[str, DecodedSplit]:
    """Splits of synthetic characters: uint8 pixels (images, size, size, 3), dark strokes on a light background.

    Parameters
    ----------
    size : int
        Side of the images.
    per_class : int
        Images of each character, in one of several fonts, rotated, sheared, scaled, shifted and with noise.
    most_classes : int, optional
        Maximum number of classes per split; by default all characters of its scripts.
    seed : int
    """
    check_number("size of synthetic characters", size, 1, LARGEST)
    faces = _faces()
    splits = {}
    seen: set[bytes] = set()
    for split, scripts in SCRIPTS.items():
        characters = list(_characters(scripts, faces, seen))
        if most_classes is not None and len(characters) > most_classes:
            chosen = np.linspace(0, len(characters) - 1, most_classes).round().astype(int)
            characters = [characters[i] for i in chosen]
        characters.sort()
        pixels = np.empty((len(characters), per_class, size, size, 3), dtype=np.uint8)
        for drawings, (_, character) in zip(pixels, characters, strict=True):
            rng = np.random.default_rng([seed, ord(character)])
            for i in range(per_class):
                drawings[i] = _draw(character, faces, size, rng)
        labels = np.repeat(np.arange(len(characters)), per_class)
        names = tuple(name for name, _ in characters)
        splits[split] = DecodedSplit(pixels.reshape(-1, size, size, 3), labels, names)
    return splits


# Font files, the plain one first, and the characters that each has.
Faces = list[tuple[Path, frozenset[int]]]


def _faces() -> Faces:
    try:
        import matplotlib
        from matplotlib.ft2font import FT2Font
    except ImportError:
        raise RunError("Synthetic characters need matplotlib's fonts: pip install 'hotshot[images]'.") from None

    paths = [Path(matplotlib.get_data_path(), "fonts", "ttf", f"{face}.ttf") for face in FACES]
    return [(path, frozenset(FT2Font(str(path)).get_charmap())) for path in paths]


def _characters(scripts: dict[str, tuple[int, int]], faces: Faces, seen: set[bytes]) -> Iterator[tuple[str, str]]:
    """Letters of some scripts by name, without those that look like an earlier one, such as Greek Alpha."""
    path, known = faces[0]
    for script, (first, last) in scripts.items():
        for code in range(first, last + 1):
            character = chr(code)
            if code not in known or not unicodedata.category(character).startswith("L"):
                continue
            shape = _stroke(character, path, 24).tobytes()
            if shape not in seen:
                seen.add(shape)
                yield f"{script}/{unicodedata.name(character).title()}", character


def _stroke(character: str, path: Path, size: int) -> np.ndarray:
    """A character in black and white, centred in a square."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(path), round(0.7 * size))
    image = Image.new("L", (size, size), 0)
    ImageDraw.Draw(image).text((size / 2, size / 2), character, fill=255, font=font, anchor="mm")
    return np.asarray(image)


def _draw(character: str, faces: Faces, size: int, rng: np.random.Generator) -> np.ndarray:
    """One image (size, size, 3) with random changes."""
    from PIL import Image

    able = [path for path, known in faces if ord(character) in known]
    large = OVERSAMPLING * size
    image = Image.fromarray(_stroke(character, able[rng.integers(len(able))], large))
    angle, shear = np.deg2rad(rng.uniform(-18, 18)), rng.uniform(-0.25, 0.25)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, shear], [0, 1]]) @ np.diag(1 / rng.uniform(0.75, 1.2, size=2))
    centre = large / 2
    shift = centre - matrix @ np.full(2, centre) + rng.uniform(-0.08, 0.08, size=2) * large
    coefficients = (matrix[0, 0], matrix[0, 1], shift[0], matrix[1, 0], matrix[1, 1], shift[1])
    image = image.transform((large, large), Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    ink = np.asarray(image.resize((size, size), Image.Resampling.BOX), dtype=np.float64) / 255
    ground, strength = rng.uniform(0.75, 1.0), rng.uniform(0.6, 1.0)
    grey = ground * (1 - strength * ink) + 0.04 * rng.standard_normal(ink.shape)
    return np.repeat((255 * np.clip(grey, 0, 1)).astype(np.uint8)[..., None], 3, axis=2)
