"""For tests and doctests alike: nobody's switches outlast a test."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_configuration() -> Iterator[None]:
    """Leave metadata routing off, as scikit-learn has it: skada, once imported, switches it on."""
    import sklearn  # here, because the process that deals tests to workers needs none of it

    with sklearn.config_context(enable_metadata_routing=False):
        yield
