"""Back to the distribution: carry dithered points onto the original rows.

`transport_recover` and `rank_recover` hand out the original rows themselves, so every joint count is exact.
`MixtureRosenblatt` followed by `EmpiricalRosenblatt` is the paper's transformation, exact on average.
"""

from shoal.recovery.empirical import EmpiricalRosenblatt
from shoal.recovery.mixture import MixtureRosenblatt
from shoal.recovery.rank import rank_recover
from shoal.recovery.transport import transport_recover

__all__ = ["EmpiricalRosenblatt", "MixtureRosenblatt", "rank_recover", "transport_recover"]
