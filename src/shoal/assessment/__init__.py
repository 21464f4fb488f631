"""What a release risks and what it keeps: one measurement for people, programs and pages."""

from shoal.assessment.assessing import assess, assess_release
from shoal.assessment.result import Assessment, ColumnComparison, Prediction
from shoal.assessment.scores import Score, Scores

__all__ = ["Assessment", "ColumnComparison", "Prediction", "Score", "Scores", "assess", "assess_release"]
