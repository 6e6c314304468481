"""What the README shows runs as it stands."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def code_blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_python_example_runs(capsys):
    (example,) = code_blocks((ROOT / "README.md").read_text(), "python")
    namespace = {}
    exec(compile(example, "README.md", "exec"), namespace)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "['worst radius', 'worst texture']"
    assert second == "(269, 2)"
    assert float(third) > 0.85


def test_every_linked_file_exists():
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
