"""What the bank knows of classes: the two-covariance model, and the inferences that are drawn from it."""
