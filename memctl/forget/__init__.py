"""Forgetting: what is to go is taken out of the tables, the ledger, the files and the history."""

from memctl.forget.erasure_plan import Selection
from memctl.forget.forgetter import ForgetScope, Forgetter
from memctl.forget.leftovers import ForgetReport, RemainingPlace

__all__ = ["ForgetReport", "ForgetScope", "Forgetter", "RemainingPlace", "Selection"]
