"""Imports Locust without its patching of the standard library, which other tests in this process need as it is."""

from __future__ import annotations

import pytest

# Not left in the environment: the Locust processes that other tests start must patch.
with pytest.MonkeyPatch.context() as environment:
    environment.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")
    import locust  # noqa: F401
