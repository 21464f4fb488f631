"""The theory names the tests that check it: they must exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_the_theory_names_exists():
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    named, file = [], ""
    for path, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text):
        file = path or file
        if path or test:
            named.append((file, test))
    assert len(named) > 20
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), test
