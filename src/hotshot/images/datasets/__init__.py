"""Datasets of images in the layouts in which people have them on disk (extra `images`).

`open_dataset` recognises miniImageNet, tieredImageNet, CUB-200-2011, CIFAR-FS, Omniglot, and folders or archives of
`split/class/image` or `class/image`; `decode` turns a split into one mapped array for training and extraction.
"""

from hotshot.images.datasets.checking import Corrupt, check_images
from hotshot.images.datasets.dataset import ImageDataset, ImageSplit, check_disjoint, make_split
from hotshot.images.datasets.decoding import DecodedSplit, decode
from hotshot.images.datasets.opening import KINDS, open_dataset
from hotshot.images.datasets.pixels import CorruptImageError
from hotshot.images.datasets.references import ArrayImage, EncodedImage, ImageReference

__all__ = [
    "KINDS",
    "ArrayImage",
    "Corrupt",
    "CorruptImageError",
    "DecodedSplit",
    "EncodedImage",
    "ImageDataset",
    "ImageReference",
    "ImageSplit",
    "check_disjoint",
    "check_images",
    "decode",
    "make_split",
    "open_dataset",
]
