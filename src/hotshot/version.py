"""The version of this release, read by the build too."""

__version__ = "0.1.0"
