"""The paper step by step, and ``fit_tasks``, which runs the steps for a batch of tasks."""
