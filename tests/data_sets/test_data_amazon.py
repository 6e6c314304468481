from __future__ import annotations

import gzip
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.errors import InputError, OptionError
from halfseen.splitting import folds, held_out_share
from halfseen_bench.data import amazon
from halfseen_bench.data.official import content_sha256
from halfseen_bench.data.splitting import target_rows

WORDS = [f"w{i}" for i in range(60)]


def review(generator: np.random.Generator, label: str) -> str:
    chosen = generator.choice(WORDS, 15, replace=False)
    mood = "great" if label == "positive" else "awful"
    entries = [f"{word}:{generator.integers(1, 4)}" for word in chosen]
    return " ".join([f"{mood}:1", *entries, f"#label#:{label}"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    for domain in amazon.DOMAINS:
        folder = tmp_path / "amazon/processed_acl" / domain
        folder.mkdir(parents=True)
        for label in ("negative", "positive"):
            lines = "".join(review(generator, label) + "\n" for _ in range(30))
            packed = domain == "books"
            path = folder / f"{label}.review{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    return tmp_path


def load(root: Path, **options):
    return amazon.load_pair(root, "books", "kitchen", **{"dimensions": 20} | options)


@pytest.mark.parametrize("rule", ["words", "leading"])
def test_every_rule_hides_half_of_the_inputs(root, rule):
    pair = load(root, rule=rule)
    assert len(pair.blocks.missing) == len(pair.blocks.observed) == 10
    assert len(set(pair.blocks.names)) == 20
    complete = pair.complete_target.open("test")[0]
    observed = list(pair.blocks.observed)
    np.testing.assert_array_equal(pair.target_train[:, observed], complete[:, observed])
    assert (pair.target_train[:, list(pair.blocks.missing)] == 0).all()
    assert np.abs(complete[:, list(pair.blocks.missing)]).max() > 0
    assert f"rule '{rule}'" in pair.card.missing
    assert pair.card.counts == {
        "books train": 48,
        "books test": 12,
        "kitchen train": 60,
        "kitchen test": 60,
    }


@pytest.mark.parametrize(("source", "target"), list(permutations(amazon.DOMAINS, 2)))
def test_all_twelve_pairs(root, source, target):
    pair = amazon.load_pair(root, source, target, dimensions=20)
    assert pair.name == f"{source}->{target}"
    assert pair.source_train.inputs.shape == (48, 20)
    assert np.bincount(pair.target_test_labels.open("test")).tolist() == [30, 30]


def test_each_word_reaches_one_block_alone(root):
    both, _ = amazon.read_domain(root, "books")
    rows = np.arange(len(both))

    def blocks(counts):
        inputs = amazon._by_halves(counts, rows, 4, np.random.default_rng(0))
        return inputs[:, :4], inputs[:, 4:]

    counts = amazon.word_counts(both, rows, 20).tolil()
    plain = blocks(counts.tocsr())
    reached = []
    for word in range(20):
        without = counts.copy()
        without[:, word] = 0
        changed = [
            not np.allclose(np.abs(a), np.abs(b), atol=1e-4)
            for a, b in zip(plain, blocks(without.tocsr()), strict=True)
        ]
        assert sum(changed) == 1
        reached.append(changed.index(True))
    assert sum(reached) == 10


def test_words_are_those_that_occur_most_often_ties_in_alphabetical_order():
    reviews = [{"good": 2, "bad": 1}, {"bad": 1, "not_bad": 1}, {"worst": 9}]
    counts = amazon.word_counts(reviews, np.array([0, 1]), 2)
    assert counts.toarray().tolist() == [[1, 2], [1, 0], [0, 0]], "bad, good"
    assert amazon.word_counts(reviews, np.array([0, 1]), 9).shape == (3, 3)


def test_the_seed_fixes_everything(root):
    first, again, other = (load(root, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.target_train, again.target_train)
    assert not np.allclose(first.target_train, other.target_train)


def test_leading_is_the_projection_of_all_words(root):
    pair = load(root, rule="leading", evaluation="split")
    source, source_labels = amazon.read_domain(root, "books")
    target, _ = amazon.read_domain(root, "kitchen")
    train, _ = held_out_share(source_labels, 0.2, 0)
    adapted, predicted = target_rows(len(target), "split", 0)
    fitted = np.concatenate([train, len(source) + adapted])
    counts = (amazon.word_counts(source + target, fitted, 5000) > 0).astype(np.float32)
    projection = PCA(20, svd_solver="full").fit(counts[fitted].toarray())
    expected = projection.transform(counts[len(source) + predicted].toarray())
    ours = pair.complete_target.open("test")[1]
    np.testing.assert_allclose(np.abs(ours), np.abs(expected), atol=1e-3)
    assert pair.blocks.missing == tuple(range(10))


class TestBadFiles:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (
                "good:1 bad:2",
                r"negative.review, line 31: the review needs a label, .* and has None",
            ),
            ("good:1 #label#:neutral", "line 31: .* and has 'neutral'"),
            ("good:1 bad #label#:negative", "line 31: 'bad' is not 'word:count'"),
            ("good:many #label#:negative", "line 31: 'good:many' is not 'word:count'"),
        ],
    )
    def test_bad_line(self, root, line, message):
        with (root / "amazon/processed_acl/kitchen/negative.review").open("a") as file:
            file.write(line + "\n")
        with pytest.raises(InputError, match=message):
            load(root)

    def test_empty_domain(self, root):
        for path in (root / "amazon/processed_acl/kitchen").iterdir():
            path.write_text("")
        with pytest.raises(InputError, match="The domain 'kitchen' is empty"):
            load(root)

    def test_missing_domain(self, root):
        (root / "amazon/processed_acl/dvd/negative.review").unlink()
        with pytest.raises(InputError, match=r"dvd/negative.review' is not in the data folder"):
            amazon.load_pair(root, "books", "dvd")

    @pytest.mark.parametrize("rule", ["words", "leading"])
    def test_too_few_words(self, root, rule):
        with pytest.raises(InputError, match="lower `dimensions`"):
            load(root, rule=rule, dimensions=400)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rule": "first"}, "rule='first' is unknown; choose one of 'words'"),
            ({"weighting": "log"}, "weighting='log' is unknown"),
            ({"dimensions": 5}, "must be even"),
            ({"test_fraction": 1.0}, "strictly between 0 and 1"),
        ],
    )
    def test_options(self, root, options, message):
        with pytest.raises(OptionError, match=message):
            load(root, **options)


@pytest.mark.data("amazon")
class TestRealFiles:
    @pytest.mark.parametrize("file", amazon.FILES, ids=lambda f: f.path)
    def test_hashes(self, data_root, file):
        assert content_sha256(data_root / file.path) == file.sha256

    @pytest.mark.parametrize("domain", amazon.DOMAINS)
    def test_published_sizes(self, data_root, domain):
        _, labels = amazon.read_domain(data_root, domain)
        assert np.bincount(labels).tolist() == [1000, 1000]

    # Ceilings and rows of a logistic regression measured by another implementation, other seeds.
    @pytest.mark.parametrize(
        ("rule", "full", "ignore", "top"),
        [
            ("words", 0.82, 0.77, 0.80),
            ("leading", 0.83, 0.48, 0.54),
        ],
    )
    def test_kitchen_to_electronics(self, data_root, rule, full, ignore, top):
        pair = amazon.load_pair(data_root, "kitchen", "electronics", rule=rule)
        labels = pair.target_test_labels.open("test")
        scores = []
        for source, target in (
            (pair.source_train.inputs, pair.complete_target.open("test")[1]),
            tuple(
                pair.blocks.flat(x, "observed")
                for x in (pair.source_train.inputs, pair.target_test)
            ),
        ):
            model = LogisticRegression(max_iter=1000).fit(source, pair.source_train.labels)
            scores.append(model.score(target, labels))
        own = pair.target_train_labels.open("ceiling")
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        x1 = pair.blocks.flat(pair.target_train, "observed")
        ceiling = cross_val_score(model, x1, own, cv=folds(own, 5)).mean()
        assert scores == pytest.approx([full, ignore], abs=0.05)
        assert ceiling == pytest.approx(top, abs=0.04)
