from __future__ import annotations

import pytest

from halfseen.cli import app as module
from halfseen.errors import InputError


def test_square_brackets_in_a_message_are_printed_as_they_are(monkeypatch, capsys):
    def failing(**_: object) -> None:
        raise InputError("pip install 'halfseen[data]'")

    monkeypatch.setattr(module, "command", lambda: failing)
    with pytest.raises(SystemExit) as stop:
        module.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: pip install 'halfseen[data]'\n"
