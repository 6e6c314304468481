"""Downloads against a server on this machine that truncates, stalls, lies and disappears."""

from __future__ import annotations

import errno
import hashlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from local_site import BODY, Site

from halfseen.errors import DownloadError
from halfseen_bench.data.download import fetch, partial_path

SHA256 = "sha256:" + hashlib.sha256(BODY).hexdigest()


def quick(site: Site, path: Path, **options: Any) -> Path:
    given = {"checksum": SHA256, "timeout": 0.3} | options
    return fetch(site.address, path, **given)


def left_in(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_arrives_whole_with_progress(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = quick(site, tmp_path / "new" / "file.gz", progress=lambda *p: seen.append(p))
    assert path.read_bytes() == BODY
    assert left_in(path.parent) == ["file.gz"]
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_truncation_is_said_and_continued_by_the_next_call(site: Site, tmp_path: Path) -> None:
    site.cut = [100_000, 250_000]
    with pytest.raises(DownloadError, match=r"only 100,000 of 700,000 bytes arrived\. 100,000 byt"):
        quick(site, tmp_path / "file.gz")
    assert not (tmp_path / "file.gz").exists()
    with pytest.raises(DownloadError, match=r"350,000 bytes are kept: run it again to go on"):
        quick(site, tmp_path / "file.gz")
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert site.asked == [None, "bytes=100000-", "bytes=350000-"]


def test_a_server_without_ranges_starts_anew(site: Site, tmp_path: Path) -> None:
    site.ranges, site.cut = False, [100_000]
    with pytest.raises(DownloadError, match="broke off"):
        quick(site, tmp_path / "file.gz")
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY


def test_a_stall_is_noticed_and_continued(site: Site, tmp_path: Path) -> None:
    site.stall = [200_000]
    started = time.monotonic()
    with pytest.raises(DownloadError, match="no byte came for too long"):
        quick(site, tmp_path / "file.gz")
    assert time.monotonic() - started < 10
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert site.asked == [None, "bytes=200000-"]


def test_a_missing_file_is_not_asked_for_twice(site: Site, tmp_path: Path) -> None:
    site.status = [404]
    with pytest.raises(DownloadError, match=r"file\.gz answered 404 Not Found\."):
        quick(site, tmp_path / "file.gz")
    assert site.asked == [None]
    assert left_in(tmp_path) == []


def test_the_next_address_serves_where_one_fails(site: Site, tmp_path: Path) -> None:
    site.status = [404, 200]
    path = fetch([site.address, site.address], tmp_path / "file.gz", checksum=SHA256)
    assert path.read_bytes() == BODY


def test_a_busy_server_is_said(site: Site, tmp_path: Path) -> None:
    site.status = [503]
    with pytest.raises(DownloadError, match="answered 503 Service Unavailable"):
        quick(site, tmp_path / "file.gz")


def test_wrong_bytes_are_refused_and_not_kept(site: Site, tmp_path: Path) -> None:
    site.body = b"x" + BODY[1:]
    with pytest.raises(
        DownloadError,
        match=r"gave is not the official file, sha256:\w+",
    ):
        quick(site, tmp_path / "file.gz")
    assert left_in(tmp_path) == []


def test_wrong_bytes_leave_the_file_that_was_there(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(b"an earlier version")
    site.body = b"x" + BODY[1:]
    with pytest.raises(DownloadError):
        quick(site, tmp_path / "file.gz")
    assert (tmp_path / "file.gz").read_bytes() == b"an earlier version"
    site.body = BODY
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY


def test_a_file_that_has_the_checksum_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(BODY)
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert site.asked == []


def test_a_part_of_another_version_is_thrown_away(site: Site, tmp_path: Path) -> None:
    partial_path(tmp_path / "file.gz").write_bytes(b"y" * 1000)
    site.etag = None
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert site.asked == ["bytes=1000-", None]


def test_a_part_that_is_too_long_is_thrown_away(site: Site, tmp_path: Path) -> None:
    partial_path(tmp_path / "file.gz").write_bytes(BODY + b"more")
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY


def test_a_whole_part_only_needs_its_name(site: Site, tmp_path: Path) -> None:
    partial_path(tmp_path / "file.gz").write_bytes(BODY)
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert left_in(tmp_path) == ["file.gz"]


def test_without_checksum_a_part_is_continued(site: Site, tmp_path: Path) -> None:
    partial_path(tmp_path / "file.gz").write_bytes(BODY[:1000])
    assert quick(site, tmp_path / "file.gz", checksum=None).read_bytes() == BODY
    assert site.asked == ["bytes=1000-"]


def test_without_length_and_checksum_nothing_is_trusted(site: Site, tmp_path: Path) -> None:
    site.length = False
    with pytest.raises(DownloadError, match="a truncated copy could not be told from a whole"):
        quick(site, tmp_path / "file.gz", checksum=None)
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    site.cut = [1000]
    with pytest.raises(DownloadError, match="is not the official file"):
        quick(site, tmp_path / "short.gz")


def test_interruption_keeps_the_part_and_the_name_free(site: Site, tmp_path: Path) -> None:
    def stop(done: int, _: int | None) -> None:
        if done > 200_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(site, tmp_path / "file.gz", progress=stop)
    kept = partial_path(tmp_path / "file.gz").stat().st_size
    assert kept > 200_000
    assert not (tmp_path / "file.gz").exists()
    site.asked = []
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY
    assert site.asked == [f"bytes={kept}-"]


def test_a_disk_that_fills_up_gets_a_sentence_and_can_go_on(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A file on a disk that holds 300,000 bytes."""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: Any) -> None:
            self.stream.close()

        def seek(self, position: int) -> None:
            self.stream.seek(position)

        def flush(self) -> None:
            self.stream.flush()

        def write(self, data: bytes) -> None:
            if self.stream.tell() + len(data) > 300_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.stream.write(data)

    plain = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(
            Path,
            "open",
            lambda p, mode="r", **k: Full(plain(p, mode, **k)) if "b" in mode else plain(p, mode),
        )
        with pytest.raises(DownloadError, match=r"no space left on device.*make room"):
            quick(site, tmp_path / "file.gz")
    assert not (tmp_path / "file.gz").exists()
    assert 0 < partial_path(tmp_path / "file.gz").stat().st_size <= 300_000
    assert quick(site, tmp_path / "file.gz").read_bytes() == BODY


def test_no_network_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(DownloadError, match=r"cannot be reached .*is there a network"):
        fetch("http://data.invalid/file.gz", tmp_path / "file.gz")
    assert left_in(tmp_path) == []


def test_nobody_listening_is_said_plainly(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/file.gz"
    with pytest.raises(DownloadError, match="connection refused"):
        fetch(address, tmp_path / "file.gz")


def test_other_kinds_of_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="is not an http or https address"):
        fetch("file:///etc/hostname", tmp_path / "file.gz")
