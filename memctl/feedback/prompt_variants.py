"""Variants of prompts: kept, shared out among conversations, compared, and suggested by a model.

Which variant is used is decided by a person; what a model suggests is stored and no more.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict

from memctl.errors import ConfigError, NotFoundError, UsageError
from memctl.feedback.conversation_records import weighted_mean
from memctl.feedback.feedback_statistics import bootstrap_difference, bootstrap_interval
from memctl.ids import storable
from memctl.kb_settings import check_name
from memctl.prompts import GUARD, choose_variant, fenced, is_shipped, load_prompt, prompt_names
from memctl.store.ledger.feedback_repositories import (
    PromptShare,
    PromptUse,
    PromptVariant,
)

if TYPE_CHECKING:
    from memctl.config import FeedbackSettings
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.store.ledger.feedback_repositories import ConversationSummary, PromptOrigin
    from memctl.store.ledger.ledger import Ledger

MIN_CONVERSATIONS = 30
"""Judged conversations that each variant needs before one can be called better."""
MIN_DIFFERENCE = 0.05
"""Rewards are coarse: a smaller difference makes none to a user."""
_LONGEST_TEXT = 200_000
_MAX_WORST = 8
_LONGEST_SHOWN = 1_500
_DIGITS = 4


class PromptReply(BaseModel):
    """What a model may write; every field is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid")

    text: str
    reason: str


class VariantView(Struct, frozen=True):
    """One version of a prompt, with how it does."""

    task: str
    version: str
    origin: PromptOrigin
    parent: str
    share: float
    """The part of the conversations that uses it, from 0 to 1."""
    uses: int
    """In how many conversations, and for how many questions outside of any, it was used."""
    judged: int
    """Of how many of them the reward is known."""
    mean_reward: float | None
    low: float | None
    """Where the mean lies with 95 % confidence; None with fewer than two rewards."""
    high: float | None
    is_winner: bool
    """Whether it is better than every other one in use by more than chance."""
    is_retired: bool
    at: datetime | None
    """When it was made; None for what comes with the program, or is a file."""
    reason: str


class PromptVariants(Struct, frozen=True):
    """The variants of the prompts of one knowledge base.

    Args:
        ledger: Where they are.
        folder: Where the knowledge base has prompts of its own as files.
        settings: What a reward is made of.
        clock: What tells the time.
        clean: Takes out what looks like a secret, where that is wanted.
    """

    ledger: Ledger
    folder: Path
    settings: FeedbackSettings
    clock: Callable[[], datetime]
    clean: Callable[[str], str]

    def tasks(self) -> list[str]:
        """Return the tasks that have prompts: those of the program, and those of agents."""
        kept = {each.task for each in self.ledger.prompt_variants.all()}
        return sorted(kept.union(prompt_names()))

    def views(self, task: str | None = None) -> Sequence[VariantView]:
        """Return the variants of one prompt, or of all, with uses and rewards.

        Raises:
            NotFoundError: There is no such prompt.
        """
        if task is not None:
            self._require(task)
        return [each for name in ([task] if task else self.tasks()) for each in self._views(name)]

    def show(self, task: str, version: str | None = None, session: str | None = None) -> Prompt:
        """Return a variant: a version, that of a conversation, or the one used most.

        Raises:
            NotFoundError: There is none.
        """
        if version is not None:
            return self._text(task, version)
        return self._text(task, self._choose(task, session or ""))

    def use(self, task: str, session: str, namespace: str, version: str | None = None) -> Prompt:
        """Return the variant for a conversation, and note that it is used there.

        Raises:
            NotFoundError: There is none.
        """
        found = self.show(task, version, session)
        at = self.clock()
        self.ledger.prompt_uses.note(
            PromptUse(task, found.version, session, namespace, at, session)
        )
        return found

    def add(
        self,
        task: str,
        text: str,
        *,
        parent: str = "",
        reason: str = "",
        origin: PromptOrigin = "own",
    ) -> PromptVariant:
        """Keep a new variant; it is not in use until it is activated.

        Raises:
            UsageError: It is empty or too long, or the task cannot be called that.
        """
        check_name(task, "a prompt")
        text = self.clean(storable(text).replace("\0", "\ufffd").strip())
        text = text.removesuffix(GUARD).rstrip()
        if not text:
            raise UsageError("the prompt is empty", "write into it what to do")
        if len(text) > _LONGEST_TEXT:
            raise UsageError(f"the prompt is longer than {_LONGEST_TEXT:,} characters")
        with self.ledger.transaction():
            known = self.ledger.prompt_variants.of(task)
            same = next((each for each in known if each.text == text), None)
            if same is not None:
                raise UsageError(
                    f"that is what version {same.version} of {task} says",
                    f"memctl prompt activate {task} {same.version}",
                )
            numbers = [int(each.version[1:]) for each in known if each.version[1:].isdigit()]
            version = f"v{max(numbers, default=0) + 1}"
            made = PromptVariant(
                task, version, self.clock(), origin, parent, text, self.clean(reason.strip())
            )
            self.ledger.prompt_variants.save(made)
            self._note("add", task, version)
        return made

    def edit(self, task: str, version: str, text: str, reason: str = "") -> PromptVariant:
        """Keep a changed variant beside the one that it was made from.

        Raises:
            NotFoundError: There is none to change.
            UsageError: As ``add``.
        """
        return self.add(task, text, parent=self._text(task, version).version, reason=reason)

    def activate(self, task: str, version: str) -> None:
        """Have every conversation use one version.

        Raises:
            NotFoundError: There is none.
            UsageError: It is retired.
        """
        self.split(task, {version: 1.0})

    def split(self, task: str, shares: Mapping[str, float]) -> None:
        """Share the conversations out among versions; which one a conversation gets never changes.

        Args:
            task: The prompt.
            shares: A part for each version; they need not sum to 1.

        Raises:
            NotFoundError: A version is not there.
            UsageError: A share is not above 0, or a version is retired.
        """
        wrong = next((each for each, share in shares.items() if not 0 < share < 1e9), None)
        if wrong is not None or not shares:
            what = f"the share of {wrong} must be more than 0" if wrong else "nothing to share out"
            raise UsageError(
                what, f"to use one version alone: memctl prompt activate {task} VERSION"
            )
        retired = {each.version for each in self.ledger.prompt_variants.of(task) if each.is_retired}
        for version in shares:
            self._text(task, version)
            if version in retired:
                raise UsageError(
                    f"version {version} of {task} is retired", f"memctl prompt add {task} FILE"
                )
        with self.ledger.transaction():
            self._share_out(task, shares)
            self._note("activate" if len(shares) == 1 else "split", task, *shares)

    def retire(self, task: str, version: str) -> None:
        """Retire a version: no conversation uses it any more, but it can still be viewed.

        Raises:
            NotFoundError: There is none that is kept here.
            UsageError: It is in use and there is no other one.
        """
        found = self.ledger.prompt_variants.find(task, version)
        if found is None:
            self._text(task, version)
            raise UsageError(
                f"version {version} of {task} comes with the program or is a file",
                f"use another one: memctl prompt activate {task} VERSION",
            )
        with self.ledger.transaction():
            shares = self.ledger.prompt_shares.of(task)
            shares.pop(version, None)
            if not shares and not is_shipped(task) and self._is_last(task, version):
                raise UsageError(
                    f"{version} is the last version of {task}", f"memctl prompt add {task} FILE"
                )
            self.ledger.prompt_variants.save(replace(found, is_retired=True))
            self._note("retire", task, version)
            self._share_out(task, shares)

    def _share_out(self, task: str, shares: Mapping[str, float]) -> None:
        total, now = sum(shares.values()), self.clock()
        self.ledger.prompt_shares.replace(
            task, (PromptShare(task, v, share / total, now) for v, share in shares.items())
        )

    def _note(self, action: str, task: str, *versions: str) -> None:
        """Note a change in the audit trail; the name of an agent's own prompt may be its words."""
        named = (f"prompt {task}",) if is_shipped(task) else ()
        objects = (*named, *(f"version {version}" for version in versions))
        self.ledger.audit.add(self.clock(), f"prompt {action}", objects)

    def diff(self, task: str, version: str, other: str | None = None) -> str:
        """Return what differs in a version from another one, by default from its parent.

        Raises:
            NotFoundError: There is none.
        """
        found = self.ledger.prompt_variants.find(task, version)
        before = other or (found.parent if found else "") or self._default(task)
        one, two = self._text(task, before), self._text(task, version)
        lines = difflib.unified_diff(
            one.text.splitlines(), two.text.splitlines(), one.id, two.id, lineterm=""
        )
        return "\n".join(lines)

    def improve(
        self, task: str, model: tuple[ChatModel, Prompt], hidden: Sequence[str] = ()
    ) -> PromptVariant:
        """Have a model write a variant from what went badly; it is stored, and not in use.

        Args:
            task: The prompt.
            model: The model, with its instructions for this.
            hidden: Private namespaces, of which it learns nothing.

        Raises:
            NotFoundError: There is no such prompt.
            UsageError: Nothing went badly, or the model changed nothing.
            ModelError: The model did not do it.
        """
        active = self._text(task, self._choose(task, ""))
        worst = self._worst(task, hidden)
        if not worst:
            raise UsageError(
                f"no conversation that used {task} has gone badly",
                "judge some: memctl feedback add SESSION --score 0.2 --text ...",
            )
        chat, prompt = model
        data = fenced([f"Instructions for {task}\n{active.text}", *map(_record_text, worst)])
        reply = chat.ask(prompt.text, data, PromptReply, version=prompt.id)
        if reply.text.strip() == active.text.strip():
            raise UsageError(f"the model would change nothing: {reply.reason.strip()[:200]}")
        return self.add(
            task, reply.text, parent=active.version, reason=reply.reason, origin="suggested"
        )

    # --- inside ---

    def _require(self, task: str) -> None:
        if task not in self.tasks():
            raise NotFoundError(
                f"there is no prompt {task[:80]!r}", "memctl prompt list names them"
            )

    def _default(self, task: str) -> str:
        """Return the version that is used where nothing was decided; "" where there is none."""
        if is_shipped(task):
            return load_prompt(task, self.folder).version
        found = default_variant(self.ledger.prompt_variants.of(task))
        return "" if found is None else found.version

    def _is_last(self, task: str, version: str) -> bool:
        kept = self.ledger.prompt_variants.of(task)
        return all(each.is_retired or each.version == version for each in kept)

    def _files(self, task: str) -> dict[str, Prompt]:
        """Return what comes with the program, and what the knowledge base has as a file."""
        if not is_shipped(task):
            return {}
        found = (load_prompt(task), load_prompt(task, self.folder))
        return {each.version: each for each in found}

    def _text(self, task: str, version: str) -> Prompt:
        from memctl.prompts import Prompt

        self._require(task)
        kept = self.ledger.prompt_variants.find(task, version)
        if kept is not None:
            return Prompt(task, kept.version, kept.text)
        files = self._files(task)
        if version not in files:
            raise NotFoundError(
                f"{task} has no version {version[:80]!r}", f"memctl prompt list {task} names them"
            )
        return files[version]

    def _choose(self, task: str, session: str) -> str:
        self._require(task)
        known = {*self._files(task), *(v.version for v in self.ledger.prompt_variants.of(task))}
        shares = self.ledger.prompt_shares.of(task)
        there = {version: share for version, share in shares.items() if version in known}
        version = choose_variant(there, session) or self._default(task)
        if not version:
            raise NotFoundError(
                f"no version of {task} is in use", f"memctl prompt activate {task} VERSION"
            )
        return version

    def _views(self, task: str) -> list[VariantView]:
        kept = self.ledger.prompt_variants.of(task)
        rewards, uses = self._rewards(task)
        shares = self.ledger.prompt_shares.of(task) or {self._default(task): 1.0}
        winner = _winner(rewards, shares)
        files = [
            PromptVariant(task, version, self.clock(), _file_origin(version))
            for version in self._files(task)
        ]
        return [
            self._view(each, shares, uses, rewards, winner, is_file=each in files)
            for each in [*files, *kept]
        ]

    def _view(
        self,
        variant: PromptVariant,
        shares: Mapping[str, float],
        uses: Mapping[str, int],
        rewards: Mapping[str, Sequence[float]],
        winner: str,
        *,
        is_file: bool,
    ) -> VariantView:
        known = rewards.get(variant.version, ())
        low, high = bootstrap_interval(known, _DIGITS)
        return VariantView(
            task=variant.task,
            version=variant.version,
            origin=variant.origin,
            parent=variant.parent,
            share=round(shares.get(variant.version, 0.0), _DIGITS),
            uses=uses.get(variant.version, 0),
            judged=len(known),
            mean_reward=round(fmean(known), _DIGITS) if known else None,
            low=low,
            high=high,
            is_winner=variant.version == winner,
            is_retired=variant.is_retired,
            at=None if is_file else variant.at,
            reason=variant.reason,
        )

    def _rewards(self, task: str) -> tuple[dict[str, list[float]], dict[str, int]]:
        """Return the rewards of what each version was used for, and how often it was used.

        What used several versions says nothing of any of them.
        """
        sessions = {
            (each.namespace, each.conversation_id): each.reward_score
            for each in self.ledger.summaries.latest()
        }
        used: dict[tuple[str, str], list[PromptUse]] = {}
        uses: dict[str, int] = {}
        for each in self.ledger.prompt_uses.of(task):
            used.setdefault((each.namespace, each.subject), []).append(each)
            uses[each.version] = uses.get(each.version, 0) + 1
        rewards: dict[str, list[float]] = {}
        for key, found in used.items():
            if len(found) > 1:
                continue
            reward = sessions.get(key)
            if reward is None and found[0].session_id is None:
                reward = self._reward_of_question(key[1])
            if reward is not None:
                rewards.setdefault(found[0].version, []).append(reward)
        return rewards, uses

    def _reward_of_question(self, query_id: str) -> float | None:
        """Return how good the answer to a question was, if it was judged."""
        detail = self.ledger.query_details.find(query_id)
        if detail is None or detail.score is None:
            return None
        return weighted_mean(
            (self.settings.satisfaction_weight, detail.score),
            (self.settings.grounding_weight, detail.grounding),
        )

    def _worst(self, task: str, hidden: Sequence[str]) -> list[ConversationSummary]:
        """Return the conversations that used a prompt and went worst, or were found fault with."""
        used = {(each.namespace, each.subject) for each in self.ledger.prompt_uses.of(task)}
        found = [
            each
            for each in self.ledger.summaries.latest()
            if (each.namespace, each.conversation_id) in used
            and each.namespace not in hidden
            and each.reward_score is not None
            and (each.reward_score < _GOOD_SCORE or each.example)
        ]
        return sorted(found, key=lambda each: (each.reward_score or 0.0, each.summary_id))[
            :_MAX_WORST
        ]


_GOOD_SCORE = 0.6


def _file_origin(version: str) -> PromptOrigin:
    return "own" if version.startswith("own-") else "shipped"


def _winner(rewards: Mapping[str, Sequence[float]], shares: Mapping[str, float]) -> str:
    """Return the version in use that is better than each other one by more than chance, or ""."""
    means = {version: fmean(rewards[version]) for version in shares if rewards.get(version)}
    if len(shares) < 2 or len(means) < len(shares):
        return ""
    best = max(means, key=lambda version: (means[version], version))
    if any(len(rewards[version]) < MIN_CONVERSATIONS for version in means):
        return ""
    for other in means:
        low, _ = bootstrap_difference(rewards[best], rewards[other], _DIGITS)
        if other != best and (
            low is None or low <= 0 or means[best] - means[other] < MIN_DIFFERENCE
        ):
            return ""
    return best


def _record_text(record: ConversationSummary) -> str:
    lines = {
        "began with": record.prompt,
        "reward": f"{record.reward_score:.2f}" if record.reward_score is not None else "",
        "what became of it": record.conversation_summary,
        "feedback": record.feedback_text,
        "it should have been": record.example,
        "suggested": record.improvement_suggestion,
    }
    return "\n".join(f"{name}: {text[:_LONGEST_SHOWN]}" for name, text in lines.items() if text)


def default_variant(variants: Iterable[PromptVariant]) -> PromptVariant | None:
    """Return which of an agent's variants is used where nothing was decided: the oldest.

    Args:
        variants: Those of one prompt, the oldest first.
    """
    kept = (each for each in variants if not each.is_retired and each.origin != "suggested")
    return next(kept, None)


def keep_in_use(ledger: Ledger, before: Mapping[str, PromptVariant], now: datetime) -> None:
    """Decide for the variants that were in use undecided, where others would be by now.

    Args:
        ledger: Where they are.
        before: What ``undecided_variants`` was.
        now: The time.
    """
    after = undecided_variants(ledger)
    for task, variant in before.items():
        if task not in after or after[task].text == variant.text:
            continue
        for each in ledger.prompt_variants.of(task):
            if each.text == variant.text and not each.is_retired:
                shares = [PromptShare(task, each.version, 1.0, now)]
                ledger.prompt_shares.replace(task, shares)


def undecided_variants(ledger: Ledger) -> dict[str, PromptVariant]:
    """Return which variants of agents' prompts are in use without anyone's decision, by task."""
    variants: dict[str, list[PromptVariant]] = {}
    for each in ledger.prompt_variants.all():
        variants.setdefault(each.task, []).append(each)
    found = {task: default_variant(each) for task, each in variants.items()}
    decided = {each.task for each in ledger.prompt_shares.all()}
    return {
        task: each
        for task, each in found.items()
        if each is not None and task not in decided and not is_shipped(task)
    }


def no_model(task: str) -> ConfigError:
    """Return the refusal to have a prompt improved where no model is configured."""
    return ConfigError(
        f"no model is configured that could improve {task}",
        "set base_url of [endpoint] and answer of [models]; or write a variant yourself: "
        f"memctl prompt add {task} FILE",
    )
