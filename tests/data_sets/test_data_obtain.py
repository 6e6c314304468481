"""Fetching and checking whole data sets: what is not the real thing never gets its place."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from local_site import Site

from halfseen.errors import DownloadError, OptionError
from halfseen_bench.data import amazon, catalog, digits, heart
from halfseen_bench.data.catalog import (
    DATA_SETS,
    DataSet,
    Remote,
    data_folder,
    data_sets,
    parse_pair,
)
from halfseen_bench.data.check import check
from halfseen_bench.data.obtain import obtain
from halfseen_bench.data.official import OfficialFile

QUICK = {"timeout": 0.3}
HOSPITALS = {name: f"the patients of {name}\n".encode() * 400 for name in ("cleveland", "va")}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def hospitals(site: Site, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """A data set of two plain files, served here."""
    official, remotes = [], []
    for name, data in HOSPITALS.items():
        path = f"heart/processed.{name}.data"
        official.append(OfficialFile(path, sha256(data)))
        site.bodies[f"/{name}"] = data
        address = site.address.replace("/file.gz", f"/{name}")
        remotes.append(Remote(path, (address,), f"sha256:{sha256(data)}"))
    monkeypatch.setattr(heart, "FILES", tuple(official))
    return replace(DATA_SETS["heart"], remotes=tuple(remotes))


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return stream.getvalue()


@pytest.fixture
def reviews(site: Site, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """A data set of one archive, served here."""
    kept = {
        "books/positive": b"good:1 #label#:positive\n",
        "dvd/negative": b"bad:1 #label#:negative\n",
    }
    monkeypatch.setattr(
        amazon,
        "FILES",
        tuple(
            OfficialFile(f"amazon/processed_acl/{name}.review.gz", sha256(data))
            for name, data in kept.items()
        ),
    )
    members = {f"processed_acl/{name}.review": data for name, data in kept.items()}
    members |= {"processed_acl/books/unlabeled.review": b"x" * 1000, "../outside.review": b"y"}
    site.body = archive(members)
    remote = Remote(
        "amazon/processed_acl.tar.gz",
        (site.address,),
        unpack=("processed_acl", "amazon/processed_acl"),
    )
    return replace(DATA_SETS["amazon"], remotes=(remote,))


def test_files_are_fetched_checked_and_put_in_place(hospitals: DataSet, tmp_path: Path) -> None:
    root = tmp_path / "data"
    seen: set[str] = set()
    findings = obtain(root, hospitals, progress=lambda name, *_: seen.add(name), **QUICK)
    assert [f.verdict for f in findings] == ["official", "official"]
    assert files_in(root) == ["heart/processed.cleveland.data", "heart/processed.va.data"]
    assert seen == {"processed.cleveland.data", "processed.va.data"}
    assert not (root / ".incoming").exists()


def test_what_is_there_is_not_fetched_again(hospitals: DataSet, site: Site, tmp_path: Path) -> None:
    obtain(tmp_path, hospitals, **QUICK)
    site.asked.clear()
    obtain(tmp_path, hospitals, **QUICK)
    assert site.asked == []
    (tmp_path / "heart/processed.va.data").write_bytes(b"something else")
    obtain(tmp_path, hospitals, **QUICK)
    assert len(site.asked) == 1
    assert (tmp_path / "heart/processed.va.data").read_bytes() == HOSPITALS["va"]


def test_a_set_that_arrives_in_part_takes_no_place(
    hospitals: DataSet, site: Site, tmp_path: Path
) -> None:
    site.status = [200, 404]
    with pytest.raises(DownloadError, match="404"):
        obtain(tmp_path, hospitals, **QUICK)
    assert not (tmp_path / "heart").exists()
    site.asked.clear()
    obtain(tmp_path, hospitals, **QUICK)  # the first file was kept, in waiting
    assert len(site.asked) == 1
    assert all(f.verdict == "official" for f in check(tmp_path, hospitals))


def test_an_archive_gives_the_wanted_files_alone(
    reviews: DataSet, site: Site, tmp_path: Path
) -> None:
    root = tmp_path / "data"
    findings = obtain(root, reviews, **QUICK)
    assert [f.verdict for f in findings] == ["official", "official"]
    assert files_in(tmp_path) == [
        "data/amazon/processed_acl/books/positive.review",
        "data/amazon/processed_acl/dvd/negative.review",
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"this is no archive", "cannot be unpacked"),
        (archive({"processed_acl/books/positive.review": b"a"})[:60], "cannot be unpacked"),
        (
            archive({"processed_acl/books/positive.review": b"forged"}),
            "positive.review: the sha256",
        ),
        (archive({"elsewhere/books/positive.review": b"a"}), "positive.review.gz: not there"),
    ],
    ids=["no archive", "truncated", "forged", "other layout"],
)
def test_a_bad_archive_leaves_nothing(
    reviews: DataSet, site: Site, tmp_path: Path, body: bytes, message: str
) -> None:
    site.body = body
    with pytest.raises(DownloadError, match=message):
        obtain(tmp_path, reviews, **QUICK)
    assert files_in(tmp_path) == []


def test_a_damaged_archive_is_not_tried_again(reviews: DataSet, site: Site, tmp_path: Path) -> None:
    whole = site.body
    noise = np.random.default_rng(0).bytes(300_000)
    damaged = archive({"processed_acl/books/positive.review": noise})
    site.body = damaged[:-8] + b"\0\0\0\0" + damaged[-4:]  # another checksum inside the gzip
    with pytest.raises(DownloadError, match=r"cannot be unpacked.*run the command again"):
        obtain(tmp_path, reviews, **QUICK)
    site.body = whole
    assert all(finding.verdict == "official" for finding in obtain(tmp_path, reviews, **QUICK))


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_unpacks_to_too_much_is_removed(
    reviews: DataSet, site: Site, tmp_path: Path, kind: str
) -> None:
    (remote,) = reviews.remotes
    suffix = {"tar": ".tar.gz", "zip": ".zip"}[kind]
    path = remote.path.replace(".tar.gz", suffix)
    members = {"processed_acl/books/positive.review": bytes(3_000_000)}
    site.body = archive(members) if kind == "tar" else zipped(members)
    assert len(site.body) < 20_000
    small = replace(reviews, remotes=(replace(remote, path=path, limit=1_000_000),))
    with pytest.raises(DownloadError, match="more than the 1,000,000 bytes allowed for it"):
        obtain(tmp_path, small, **QUICK)
    assert files_in(tmp_path) == []


def test_a_zip_gives_the_wanted_files(reviews: DataSet, site: Site, tmp_path: Path) -> None:
    (remote,) = reviews.remotes
    site.body = zipped(
        {
            "processed_acl/books/positive.review": b"good:1 #label#:positive\n",
            "processed_acl/dvd/negative.review": b"bad:1 #label#:negative\n",
            "processed_acl/../../outside.review": b"y",
        }
    )
    packed = replace(reviews, remotes=(replace(remote, path="amazon/processed_acl.zip"),))
    assert [f.verdict for f in obtain(tmp_path, packed, **QUICK)] == ["official", "official"]
    assert files_in(tmp_path) == [
        "amazon/processed_acl/books/positive.review",
        "amazon/processed_acl/dvd/negative.review",
    ]


def test_check_names_what_is_missing_and_what_is_wrong(hospitals: DataSet, tmp_path: Path) -> None:
    (tmp_path / "heart").mkdir()
    (tmp_path / "heart/processed.va.data").write_bytes(HOSPITALS["va"][:-1])
    cleveland, va = check(tmp_path, hospitals)
    assert (cleveland.verdict, cleveland.is_good) == ("missing", False)
    assert (va.verdict, va.is_good) == ("wrong", False)
    assert "the sha256 of its content is" in va.detail


def test_check_accepts_a_packed_or_unpacked_file(hospitals: DataSet, tmp_path: Path) -> None:
    (tmp_path / "heart").mkdir()
    for name, data in HOSPITALS.items():
        path = tmp_path / f"heart/processed.{name}.data.gz"
        path.write_bytes(gzip.compress(data))
    assert [f.verdict for f in check(tmp_path, hospitals)] == ["official", "official"]
    path.write_bytes(gzip.compress(data)[:-20])
    assert [f.verdict for f in check(tmp_path, hospitals)] == ["official", "wrong"]


def test_what_is_there_and_may_serve_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a file that has no recorded hash is as good as another."""
    (tmp_path / "svhn").mkdir()
    for part in ("train", "test"):
        (tmp_path / f"svhn/{part}_32x32.mat").write_bytes(b"a part")
    findings = obtain(tmp_path, DATA_SETS["svhn"], **QUICK)
    assert [f.verdict for f in findings] == ["other", "other"]
    assert "sha256 is not that of the published file" in findings[0].detail
    (tmp_path / "bsds500/train").mkdir(parents=True)
    (finding,) = check(tmp_path, DATA_SETS["bsds500"])
    assert (finding.verdict, finding.detail) == ("other", "there; no checksum is known")


def test_every_set_has_files_and_every_file_a_source() -> None:
    for data_set in DATA_SETS.values():
        assert data_set.files
        assert data_set.licence
        single = {remote.path for remote in data_set.remotes if not remote.unpack}
        for official in data_set.files if single else ():
            assert official.path in single or set(official.instead) <= single
        for remote in data_set.remotes:
            assert remote.path.startswith(f"{data_set.name}/")
            assert all(a.startswith(("https://", "http://")) for a in remote.addresses)
            if remote.checksum:
                algorithm, digest = remote.checksum.split(":")
                assert len(digest) == {"sha256": 64, "md5": 32}[algorithm]
    patients = DATA_SETS["heart"]
    heart_served = {r.path: patients.checksum(r) for r in patients.remotes}
    assert heart_served == {f.path: f"sha256:{f.sha256}" for f in heart.FILES}
    images = DATA_SETS["mnist"]  # packed: the served bytes have another hash than the content
    assert images.checksum(images.remotes[0]) == images.remotes[0].checksum
    held = {d.name for d in DATA_SETS.values() if d.family == "digits"}
    assert {f.path.split("/")[0] for f in digits.FILES} == held


def test_data_folder_is_named_by_option_then_variable_then_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "option") == tmp_path / "option"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("HALFSEEN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder().parts[-2:] == ("halfseen", "data")


@pytest.mark.parametrize("pair", ["dvd:kitchen", "dvd->kitchen", " dvd -> kitchen "])
def test_pairs_are_written_in_several_ways(pair: str) -> None:
    assert parse_pair(pair, catalog.FAMILIES["amazon"]) == ("dvd", "kitchen")


@pytest.mark.parametrize("pair", ["dvd", "dvd:", "a:b:c", ""])
def test_other_writings_are_refused(pair: str) -> None:
    with pytest.raises(OptionError, match="write source:target, as in dvd:electronics"):
        parse_pair(pair, catalog.FAMILIES["amazon"])


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        OptionError, match="No data set is called 'mnits'; there are digits, amazon"
    ):
        list(data_sets("mnits"))
    with pytest.raises(OptionError, match="No data set is called"):
        catalog.family("mnits")
