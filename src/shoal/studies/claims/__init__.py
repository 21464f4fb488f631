"""The claims of the paper's empirical section, each with what we measured, whether it holds, and why.

Claims are in our words, and so are the rules by which they are judged; both stand here. Of two methods on the same
splits differences count beyond two standard errors. These are over random halvings of one survey, as in the paper: they
say how sure a result is for these respondents, not how far another survey would differ.
"""

from __future__ import annotations

from shoal.studies.claims import areas, prediction, released, risk
from shoal.studies.claims.making import VERDICTS, Claim, Tables

__all__ = ["VERDICTS", "Claim", "judge"]


def judge(tables: Tables) -> list[Claim]:
    """Return all claims, in the order of the paper."""
    return [make(tables) for part in (risk, prediction, areas, released) for make in part.CLAIMS]
