"""Datasets of images (extra `images`): folders and archives, published layouts, decoding."""
