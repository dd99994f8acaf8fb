"""From images to feature files (extra `images`): datasets, backbones, training, extraction."""

import os

# OpenMP looks once, when PyTorch is imported. By default its threads spin while they wait for each other, and where
# another process wants one of the cores, most of the time goes to that.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
