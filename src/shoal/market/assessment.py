"""What would it cost to insure another population? From the members at hand, and the demographics of both markets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from shoal.coding import Coding, Floats
from shoal.encoding import find_missing
from shoal.errors import InputError, suggest
from shoal.market.costs import make_cost_model
from shoal.market.findings import MarketRisk, SegmentCost
from shoal.market.markets import Markets, check_names, read_markets, read_side
from shoal.progress import Progress, Reporter
from shoal.randomness import make_generator
from shoal.release import Release
from shoal.schema import read_frame
from shoal.shift.diagnostics import Diagnostics
from shoal.shift.learning import fit_weighted
from shoal.shift.ratio import DensityRatio
from shoal.shift.weighting import need_weight_argument
from shoal.utility.prediction import check_resampling, summarise


class MarketRiskAssessment:
    """Estimate what the enrollees of a new market will cost, from the members of an existing one.

    Members of the existing market are weighted by w(x) = p(x | new market) / p(x | existing market), times how much
    more likely somebody like them enrols in the new market than in the existing one (default: equally likely, so that
    enrolment depends on x alone). A model of cost is fitted with these weights and averaged over them.

    Parameters
    ----------
    model : str, scikit-learn regressor or None, default "additive"
        A name of :func:`shoal.market.make_cost_model`, a regressor for the members' columns that takes sample weights,
        or None to average the costs themselves.
    ratio : DensityRatio, optional
        How two tables of people are compared; default EmpiricalRatio(). Margins are always raked.
    enrolment : function, optional
        Given the members' table, returns for every one of them how many times as likely such a person enrols in the new
        market as in the existing one.
    cost_of_living : float, default 1
        Costs of the new market over those of the existing one for the same person.
    n_resamples : int, default 200
        Bootstrap over members and over the people of both markets where these are tables (so that they should be
        different samples); ratio and model are fitted anew every time, bins of continuous columns stay. Intervals are
        too narrow where much of the weight rests on combinations with fewer than about ten members, and they do not
        know what a release flattened: compare with `raw`.
    confidence : float, default 0.95
    random_state : int or numpy.random.Generator, default 0
    progress : bool or callable, optional
        As in :func:`shoal.anonymize`.

    Examples
    --------
    >>> import shoal
    >>> cohort = shoal.datasets.load_cohort(n=2000)
    >>> older = {"age_group": dict(zip(cohort["age_group"].dtype.categories, [1, 1, 1, 2, 2, 3, 3, 3]))}
    >>> risk = MarketRiskAssessment(n_resamples=50).assess(cohort, cost="cost", new=older)
    >>> risk.cost.value > risk.existing_cost
    True
    """

    def __init__(
        self,
        model: Any = "additive",
        *,
        ratio: DensityRatio | None = None,
        enrolment: Callable[[Any], ArrayLike] | None = None,
        cost_of_living: float = 1.0,
        n_resamples: int = 200,
        confidence: float = 0.95,
        random_state: Any = 0,
        progress: bool | Progress | None = None,
    ) -> None:
        self.model = model
        self.ratio = ratio
        self.enrolment = enrolment
        self.cost_of_living = cost_of_living
        self.n_resamples = n_resamples
        self.confidence = confidence
        self.random_state = random_state
        self.progress = progress

    def assess(
        self,
        members: Any,
        *,
        new: Any,
        existing: Any = None,
        cost: str | None = None,
        columns: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        weight_new: str | ArrayLike | None = None,
        weight_existing: str | ArrayLike | None = None,
        segments: Sequence[str] = (),
        enrollees: float | None = None,
        raw: Any = None,
    ) -> MarketRisk:
        """Estimate the expected cost per enrollee of the new market, on the whole and by segment.

        Parameters
        ----------
        members : Release or table
            The members of the existing market, with their costs.
        new, existing : table of people, or margins
            Demographics of the two markets. Margins map a column, or a tuple of columns, to counts or shares of its
            levels (see RakedRatio); a Release is read as a table. Without `existing`, `new` is compared with the
            members themselves: where it describes the new market's *enrollees*, or everybody is a member.
        cost : str, optional
            The column of costs; default the only sensitive column of a Release.
        columns : list of str, optional
            The demographics in which markets differ; default those of `new`.
        features : list of str, optional
            What the model of cost reads; default `columns`.
        weight : str, optional
            A column of survey weights of the members; default that of a Release.
        weight_new, weight_existing : name of a column, or array, optional
            Survey weights of the people of the markets.
        segments : list of str
            Columns of the members: costs for each of their levels.
        enrollees : float, optional
            How many are expected to enrol, for the total cost.
        raw : table, optional
            The members' table before its release: the estimate from it is set beside the other, to show what k cost.
        """
        cost, weight = _find_cost(members, cost), _find_weight(members, weight)
        new_market, existing_market = (
            read_side("new", new, weight_new),
            read_side("existing", existing, weight_existing),
        )
        if new_market is None:
            raise InputError("new must be a table of people, or margins, of the new market.")
        if columns is None and cost in new_market.columns:
            raise InputError(f"new has the members' column of costs, {cost!r}; name the demographics in columns.")
        if columns is None and weight is not None and weight in new_market.columns:
            raise InputError(f"new has the column of weights {weight!r}: say weight_new={weight!r}, or name columns.")
        found = []
        for table in (members, raw):
            if table is None:
                continue
            frame = read_frame(table.table if isinstance(table, Release) else table)
            markets = read_markets(frame, weight, new_market, existing_market, columns, self.ratio, self.enrolment)
            risk = self._assess(markets, cost, features, segments)
            total = None if enrollees is None else risk.cost.times(_check_number("enrollees", enrollees))
            found.append(replace(risk, total=total, assumptions=self._assume(existing is None)))
        found[0].diagnostics.warn("MarketRiskAssessment")
        k = members.certificate["k"] if isinstance(members, Release) else None
        return replace(found[0], raw=found[1] if len(found) > 1 else None, k=k)

    def _assess(
        self, markets: Markets, cost: str, features: Sequence[str] | None, segments: Sequence[str]
    ) -> MarketRisk:
        """Estimate, and estimate again from resampled people."""
        costs = _read_costs(markets.members, cost)
        predict = self._make_model(
            markets.members, markets.columns if features is None else check_names("features", features), costs
        )
        groups = [group for column in segments for group in _read_segments(markets.members, column)]
        members = [np.ones(len(costs), dtype=bool), *(group.members for group in groups)]
        factor = _check_number("cost_of_living", self.cost_of_living)

        def estimate(at: Markets, weights: Floats) -> Floats:
            total = at.omega * weights
            predicted = factor * predict(total)
            sums = [(total[rows].sum(), total[rows] @ predicted[rows]) for rows in members]
            return np.array([cost / mass if mass > 0 else np.nan for mass, cost in sums])

        weights = markets.compare()
        values, draws = estimate(markets, weights), []
        rng = make_generator(self.random_state)
        check_resampling(self.n_resamples, self.confidence)
        with Reporter(self.progress) as reporter:
            report = reporter.stage("resampling")
            for b in range(self.n_resamples):
                redrawn = markets.redrawn(rng)
                draws.append(estimate(redrawn, redrawn.compare()))
                report((b + 1) / self.n_resamples)
        whole, *parts = (summarise(v, d, self.confidence) for v, d in zip(values, np.array(draws).T, strict=True))
        share = markets.omega / markets.omega.sum()
        return MarketRisk(
            cost=whole,
            existing_cost=float(share @ costs),
            total=None,
            segments=[
                SegmentCost(
                    group.column,
                    group.level,
                    float(share[group.members].sum()),
                    float((share * weights)[group.members].sum()),
                    part,
                    int(group.members.sum()),
                )
                for group, part in zip(groups, parts, strict=True)
            ],
            diagnostics=Diagnostics.of(share, weights, clipped=markets.clipped, outside=markets.outside),
            weights=weights,
            assumptions=[],
        )

    def _make_model(self, members: nw.DataFrame[Any], features: list[str], costs: Floats) -> Callable[[Floats], Floats]:
        """Return a function from weights to the members' predicted costs."""
        if self.model is None:
            return lambda weights: costs  # noqa: ARG005
        for name in features:
            if name not in members.columns:
                raise InputError(f"features names {name!r}, which members have not{suggest(name, members.columns)}")
        table = members.select(features).to_native()
        if not isinstance(self.model, str):
            need_weight_argument(self.model)
            return lambda weights: _fit_and_predict(self.model, table, costs, weights)
        coder, regressor = make_cost_model(self.model)
        design = coder.fit_transform(table)  # reads no weights, so once is enough
        return lambda weights: np.asarray(fit_weighted(clone(regressor), design, costs, weights).predict(design))

    def _assume(self, enrollees_known: bool) -> list[str]:
        said = []
        if self.enrolment is not None:
            said.append("Who enrols depends on the demographics, and on the market as the given function says.")
        elif not enrollees_known:
            said.append("Who enrols depends on the demographics, not on the market.")
        where = "" if self.cost_of_living == 1 else f" times {self.cost_of_living:g}"
        said.append(f"People of the same demographics cost as much in the new market as in the existing one{where}.")
        return said


def _fit_and_predict(model: Any, table: Any, costs: Floats, weights: Floats) -> Floats:
    try:
        return np.asarray(fit_weighted(clone(model), table, costs, weights).predict(table), dtype=np.float64)
    except (TypeError, ValueError):  # whose text may show a value of the data
        raise InputError(
            f"{type(model).__name__} could not be fitted to the members' columns; give it numbers (features=...), or a "
            "pipeline that makes them, such as make_cost_model(...)."
        ) from None


@dataclass(frozen=True)
class Segment:
    """The members who have one level of a column."""

    column: str
    level: str
    members: NDArray[np.bool_]


def _read_segments(members: nw.DataFrame[Any], column: str) -> list[Segment]:
    """Return the levels of a column in their order, missing last, and who has them."""
    if column not in members.columns:
        raise InputError(f"segments names {column!r}, which members have not{suggest(column, members.columns)}")
    coded = Coding({"members": members.select([column])}, [np.ones(len(members))]).columns[0]
    if coded.is_continuous:
        raise InputError(
            f"segments names {column!r}, which has more than 32 distinct numbers; make groups of it first."
        )
    codes, values = coded.codes(members[column]), members[column].to_list()
    segments = []
    for code in np.unique(codes):
        rows = codes == code
        level = "missing" if code == coded.n_levels - 1 else str(values[int(np.argmax(rows))])
        segments.append(Segment(column, level, rows))
    return segments


def _find_cost(members: Any, cost: str | None) -> str:
    if isinstance(members, Release) and members.schema.name("unit") is not None:
        raise InputError(
            "members is a release with several rows per person: costs would be per row, and intervals too narrow. Add "
            "up costs to one row a person before releasing."
        )
    if cost is not None:
        return cost
    sensitive = members.schema.names("sensitive") if isinstance(members, Release) else []
    if len(sensitive) != 1:
        raise InputError(
            "cost must name the members' column of costs (only a Release with one sensitive column knows)."
        )
    return str(sensitive[0])


def _find_weight(members: Any, weight: str | None) -> str | None:
    return members.schema.name("weight") if weight is None and isinstance(members, Release) else weight


def _read_costs(members: nw.DataFrame[Any], cost: str) -> Floats:
    if cost not in members.columns:
        raise InputError(f"cost={cost!r} is not a column of the members{suggest(cost, members.columns)}")
    if not members[cost].dtype.is_numeric() or find_missing(members[cost]).any():
        raise InputError(f"cost={cost!r} must be numbers, none missing.")
    costs = members[cost].to_numpy().astype(np.float64)
    if not np.isfinite(costs).all():
        raise InputError(f"cost={cost!r} has infinite values.")
    return np.asarray(costs)


def _check_number(name: str, number: float) -> float:
    if not isinstance(number, Real) or not 0 < float(number) < np.inf:
        raise InputError(f"{name}={number!r} must be a number above 0.")
    return float(number)
