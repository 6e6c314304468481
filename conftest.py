"""For tests and doctests alike: nobody's switches outlast a test."""

from collections.abc import Iterator

import pytest
import sklearn


@pytest.fixture(autouse=True)
def own_configuration() -> Iterator[None]:
    """Leave metadata routing off, as scikit-learn has it: skada, once imported, switches it on."""
    with sklearn.config_context(enable_metadata_routing=False):
        yield
