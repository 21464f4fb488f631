"""What a release risks: exact re-identification risk, attackers, and what a table shows by itself."""

from shoal.privacy.combinations import Combination, risky_combinations
from shoal.privacy.disclosure import class_sizes, presence, summarise_risk
from shoal.privacy.findings import Finding
from shoal.privacy.guessing import compare_attackers, guess_linkage
from shoal.privacy.linkage import simulate_linkage
from shoal.privacy.models import k_anonymity, l_diversity, t_closeness
from shoal.privacy.risk import Risk, reidentification_risk

__all__ = [
    "Combination",
    "Finding",
    "Risk",
    "class_sizes",
    "compare_attackers",
    "guess_linkage",
    "k_anonymity",
    "l_diversity",
    "presence",
    "reidentification_risk",
    "risky_combinations",
    "simulate_linkage",
    "summarise_risk",
    "t_closeness",
]
