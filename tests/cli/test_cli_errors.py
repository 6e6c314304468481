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


@pytest.mark.parametrize("more", [0, 2])
def test_a_fault_of_ours_is_a_sentence_and_another_exit_code(more, monkeypatch, capsys):
    def failing(**_: object) -> None:
        module.set_verbosity(more)
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(module, "command", lambda: failing)
    with pytest.raises(SystemExit) as stop:
        module.main()
    module.set_verbosity(0)
    said = capsys.readouterr().err
    assert stop.value.code == 1
    assert "halfseen failed (ZeroDivisionError: division by zero)." in said
    assert ("Traceback" in said) == (more == 2)
