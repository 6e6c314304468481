import numpy as np
import pytest
import torch

from halfseen import Blocks, InputError


@pytest.mark.parametrize(
    "missing", [["b", "d"], [1, 3], [-3, 3], np.array([False, True, False, True])]
)
def test_columns_by_name_index_and_mask_agree(missing):
    blocks = Blocks.columns(["a", "b", "c", "d"], missing)
    assert blocks.missing == (1, 3)
    assert blocks.observed == (0, 2)


def test_split_of_a_table_keeps_each_blocks_columns():
    x = torch.arange(8.0).reshape(2, 4)
    observed, missing = Blocks.columns(4, [1, 3]).split(x)
    assert observed.tolist() == [[0, 2], [4, 6]]
    assert missing.tolist() == [[1, 3], [5, 7]]


@pytest.mark.parametrize("fraction", [0.3, 0.4, 0.5, 0.6, 0.7])
@pytest.mark.parametrize("side", ["top", "bottom"])
def test_image_rows_are_a_fraction_at_one_side(fraction, side):
    blocks = Blocks.rows((3, 32, 32), fraction=fraction, side=side)
    count = round(32 * fraction)
    expected = range(count) if side == "top" else range(32 - count, 32)
    assert blocks.missing == tuple(expected)


def test_image_canvases_add_up_to_the_image_when_the_fill_is_zero():
    x = torch.randn(2, 3, 8, 8)
    observed, missing = Blocks.rows((3, 8, 8), fraction=0.25).split(x)
    assert torch.equal(observed + missing, x)
    assert not observed[:, :, 6:].any()
    assert not missing[:, :, :6].any()


def test_views_show_what_their_names_say():
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4) + 1
    blocks = Blocks.columns(4, [3], fill=-7.0)
    assert blocks.view(x, "full").tolist() == x.tolist()
    assert blocks.view(x, "zero")[:, 3].tolist() == [-7.0, -7.0]
    assert blocks.view(x, "ignore").shape == (2, 3)
    assert x[0, 3] == 4.0, "the input itself must not change"


def test_scattered_rows_are_hidden_too():
    blocks = Blocks((1, 4, 4), (0, 2))
    hidden = blocks.hide(torch.ones(1, 1, 4, 4))
    assert hidden[0, 0, :, 0].tolist() == [0, 1, 0, 1]
    assert blocks.flat(torch.ones(5, 1, 4, 4), "observed").shape == (5, 8)


def test_any_pixels_can_be_missing():
    random = np.random.default_rng(0)
    mask = random.random((4, 6)) < 0.4
    blocks = Blocks.pixels((3, 4, 6), mask)
    assert blocks.by_pixel
    assert np.array_equal(blocks.mask, mask)
    x = random.normal(size=(5, 3, 4, 6)).astype(np.float32)
    for images in (
        x,
        torch.from_numpy(x),
        torch.from_numpy(x).to(memory_format=torch.channels_last),
    ):
        observed, missing = (np.asarray(part) for part in blocks.split(images))
        assert np.array_equal(observed, np.where(mask, 0, x))
        assert np.array_equal(missing, np.where(mask, x, 0))
        flat = np.asarray(blocks.flat(images, "missing"))
        assert np.array_equal(flat, x[:, :, mask].reshape(5, -1))
    assert blocks.rows_of("missing") == tuple(np.flatnonzero(mask.any(1))[[0, -1]] + [0, 1])
    assert blocks.names_of(blocks.missing[:1]) == [f"pixel {np.flatnonzero(mask)[0]}"]


def test_a_mask_of_whole_rows_is_one_of_rows():
    mask = np.zeros((8, 6), dtype=bool)
    mask[5:] = True
    assert Blocks.pixels((1, 8, 6), mask) == Blocks((1, 8, 6), (5, 6, 7))
    assert Blocks.pixels((1, 8, 6), mask).rows_of("observed") == (0, 5)
    assert Blocks.columns(3, [1]).rows_of("missing") is None


def test_round_trip_through_plain_data():
    pixels = Blocks.pixels((1, 2, 2), np.eye(2, dtype=bool))
    for blocks in (Blocks.columns(["a", "b"], ["b"]), Blocks.rows((1, 8, 8), fill=0.5), pixels):
        assert Blocks.from_dict(blocks.to_dict()) == blocks


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Blocks.columns(["a", "b"], ["c"]), "names column 'c', which the source does not"),
        (lambda: Blocks.columns(2, ["a"]), "holds column names, but the inputs have none"),
        (lambda: Blocks.columns(2, [5]), "names column 5, but there are 2"),
        (lambda: Blocks.columns(2, [0, 1]), "nothing left to predict from"),
        (lambda: Blocks.columns(3, np.array([True])), "mask of the missing block has 1 entries"),
        (lambda: Blocks.columns(3, [0.5]), "must hold column names, indices or a mask"),
        (lambda: Blocks.rows((1, 8, 8), fraction=1.0), "strictly between 0 and 1"),
        (lambda: Blocks.rows((1, 8, 8), side="left"), "choose 'top' or 'bottom'"),
        (lambda: Blocks.pixels((1, 2, 2), np.ones((2, 3))), r"has shape \(2, 3\), and the images"),
        (lambda: Blocks((3,), (0,), by_pixel=True), "has columns and no pixels"),
        (lambda: Blocks((2, 2), (0,)), "must be a vector or a .* image"),
    ],
)
def test_bad_blocks_get_a_sentence(build, message):
    with pytest.raises(InputError, match=message):
        build()
