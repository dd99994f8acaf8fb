"""From raw inputs to answers: texts, images or features in, classes out."""
