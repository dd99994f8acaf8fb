"""From images to feature files (extra `images`): datasets, backbones, training, extraction."""
