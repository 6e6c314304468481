"""The digits of the demo: dealt once, and sealed."""

import numpy as np

from halfseen_bench.data.demo import demo_pair


def test_domains_are_disjoint_and_the_test_set_is_sealed():
    pair = demo_pair(3)
    source = {image[:, :8].tobytes() for image in pair.source_train.inputs}
    complete_train, complete_test = pair.complete_target.open("test")
    assert len(source) > 600
    assert not np.isnan(complete_train).any()
    for hidden, complete in (
        (pair.target_train, complete_train),
        (pair.target_test, complete_test),
    ):
        assert (hidden[:, :, 8:] == 0).all()
        assert np.array_equal(hidden[:, :, :8], complete[:, :, :8])
    assert "Sealed" in repr(pair.target_test_labels)
    counts = pair.card.counts
    assert sum(counts.values()) == 1797, "every digit is dealt once"
