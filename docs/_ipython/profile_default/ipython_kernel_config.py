"""Kernels of the site report errors only: that they talk over local TCP is no news."""

c.Application.log_level = "ERROR"  # noqa: F821 (IPython defines c)
c.IPKernelApp.log_level = "ERROR"  # noqa: F821
