"""Forgetting: what is to go is taken out of the tables, the ledger, the files and the history."""

from memctl.forget.forgetter import Forgetter
from memctl.forget.report import ForgetReport, Left
from memctl.memories.forgetting import Selection

__all__ = ["ForgetReport", "Forgetter", "Left", "Selection"]
