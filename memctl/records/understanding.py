"""What is understood of a text: its structure, before it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memctl.swift import swift


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity named in a document: a person, place, organization, product, thing."""

    name: str
    type: str = "other"
    count: int = 1


@dataclass(frozen=True, slots=True)
class Distilled:
    """A statement worth remembering on its own, with where it stands in the document."""

    text: str
    type: str
    """fact, important_fact, decision, preference, plan or observation."""
    start: int
    end: int
    importance: float
    confidence: float
    reason: str
    """The signal that made it: ``trigger: remember``, ``pattern: we decided``, ``model: ...``."""
    subject: str = ""
    relation: str = ""
    object: str = ""
    """Who or what, how, and what it says, where the method can tell them apart."""


@swift
@dataclass(frozen=True, slots=True)
class Understanding:
    """What was understood of one document."""

    method: str
    """Which method made it, such as ``builtin/1``, so that a better one can redo it."""
    gist: str
    language: str
    """ISO 639-1 code, or "" when it cannot be told."""
    entities: tuple[EntityMention, ...]
    topics: tuple[str, ...]
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[str, ...]
    dates: tuple[str, ...]
    """ISO 8601 dates (or months, years) that the text mentions."""
    importance: float
    """0 to 1."""
    signals: Mapping[str, float]
    """What the importance is made of: signal name to its share; they add up to ``importance``."""
    distilled: tuple[Distilled, ...]
    reason: str = ""
    """Why it matters as much as it does, where the method can say it in words."""
    missing: tuple[str, ...] = ()
    """What of it was not done as it should be: ``model understanding``."""
    dropped: int = 0
    """Facts that were left out, for their quotes do not stand in the document."""
