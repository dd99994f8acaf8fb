"""The paper on your own features: experiments, published numbers, claims, figures."""
