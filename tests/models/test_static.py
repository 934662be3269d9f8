"""The built-in embedder: what its vectors promise, and what happens when its files are gone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from waiting import PATIENCE

from memctl.errors import ConfigError, MemctlError
from memctl.models import BUILTIN_EMBEDDER, Embedder, load_embedder, static_embedder

EMBEDDER = static_embedder.load_wordllama(BUILTIN_EMBEDDER)


def similarity(left: str, right: str) -> float:
    vectors = EMBEDDER.embed([left, right])
    return float(vectors[0] @ vectors[1])


def test_it_keeps_the_embedder_protocol() -> None:
    embedder: Embedder = load_embedder(BUILTIN_EMBEDDER)
    assert embedder.id == BUILTIN_EMBEDDER
    assert embedder.dimension == 256
    vectors = embedder.embed(["one", "two"])
    assert vectors.shape == (2, 256)
    assert vectors.dtype == np.float32


def test_related_sentences_are_nearer_than_unrelated_ones() -> None:
    question = "Who repaired the bicycle?"
    assert similarity(question, "My brother fixed the bike.") > similarity(
        question, "The bank raised interest rates."
    )


def test_words_weighted_alike_are_the_text() -> None:
    words = ["My", "brother", "fixed", "the", "bike"]
    vector = EMBEDDER.embed_words(words, [0.5] * len(words))
    np.testing.assert_allclose(vector, EMBEDDER.embed([" ".join(words)])[0], atol=1e-5)


def test_a_heavier_word_pulls_the_vector_towards_itself() -> None:
    coffee = EMBEDDER.embed(["coffee"])[0]
    light, heavy = (EMBEDDER.embed_words(["coffee", "river"], [w, 1.0]) for w in (0.2, 5.0))
    assert heavy @ coffee > light @ coffee
    assert not EMBEDDER.embed_words([], []).any()


def test_an_empty_or_blank_text_becomes_zeros_and_leaves_its_neighbours_alone() -> None:
    vectors = EMBEDDER.embed(["", "coffee", "  \n\t", "tea", ""])
    assert not vectors[[0, 2, 4]].any()
    assert np.array_equal(vectors[[1, 3]], EMBEDDER.embed(["coffee", "tea"]))


def test_no_texts_give_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 256)


@settings(max_examples=60)
@given(st.lists(st.text(max_size=80), max_size=12))
def test_a_text_has_the_same_vector_whatever_stands_beside_it(texts: list[str]) -> None:
    together = EMBEDDER.embed(texts)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_allclose(row, EMBEDDER.embed([text])[0], atol=1e-5)
        assert np.isclose(np.linalg.norm(row), 1.0, atol=1e-5) or not text.strip()


pieces = st.sampled_from(
    ["tea", " ", "  ", "\n", "\u2581", "<s>", "</s>", "<unk>", "<", "7", ", ", "é"]
)


@settings(max_examples=300)
@given(st.lists(pieces | st.text(max_size=6), max_size=12).map("".join))
def test_a_text_has_the_tokens_that_its_tokenizer_makes_of_the_whole_of_it(text: str) -> None:
    encoded = text.strip().encode("utf-8", "replace").decode("utf-8")
    ids = EMBEDDER._tokenizer.encode(encoded, add_special_tokens=False).ids if encoded else []
    total = EMBEDDER._table[np.asarray(ids, dtype=np.intp)].sum(axis=0)
    expected = total / (np.linalg.norm(total) or 1)
    np.testing.assert_allclose(EMBEDDER.embed([text])[0], expected, atol=1e-5)
    whole = text.encode("utf-8", "replace").decode("utf-8")
    counted = EMBEDDER._tokenizer.encode(whole, add_special_tokens=False)
    assert EMBEDDER.count_tokens(text) == len(counted)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@settings(max_examples=200)
@given(words | st.text("abelnorst", min_size=1, max_size=80))
def test_first_words_and_later_ones_have_the_same_tokens(word: str) -> None:
    assert EMBEDDER._words._pairs.encode(word) == EMBEDDER._encode_word(word)


@pytest.mark.parametrize("joint", ["", "\n", "\t", '","'])
def test_a_long_text_without_spaces_is_split_by_the_library(
    joint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: list[str] = []
    encode = static_embedder._BytePairs.encode

    def record(pairs: static_embedder._BytePairs, word: str) -> list[int]:
        split.append(word)
        return encode(pairs, word)

    monkeypatch.setattr(static_embedder._BytePairs, "encode", record)
    long = joint.join(f"host{number}.example.org" for number in range(1_500))
    assert len(long) > 28_000
    embedder = static_embedder.StaticEmbedder("fresh", EMBEDDER._folder)
    tokens = EMBEDDER._tokenizer.encode(f"of {long}", add_special_tokens=False)
    assert embedder.count_tokens(f"of {long}") == len(tokens)
    assert split == ["of"]


def test_a_question_is_embedded_without_the_library_that_splits_whole_texts() -> None:
    code = (
        "import sys; from memctl.models import load_embedder, BUILTIN_EMBEDDER as b;"
        "load_embedder(b).embed(['What did the Müllers plan for 2026?']);"
        "assert 'tokenizers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_vectors_are_mapped_and_are_those_of_the_file() -> None:
    stored = EMBEDDER._stored_vectors
    read = load_file(EMBEDDER._folder / static_embedder.WEIGHTS_FILE)
    assert np.array_equal(stored, read[static_embedder.WEIGHTS_KEY])
    assert isinstance(stored.base, np.memmap)


def test_words_that_are_kept_at_hand_do_not_grow_beyond_their_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(static_embedder, "MAX_WORDS", 50)
    texts = [f"note{number} " + "words" * 20 for number in range(200)]
    assert np.array_equal(EMBEDDER.embed(texts), EMBEDDER.embed(list(texts)))
    assert 0 < len(EMBEDDER._words) <= 50
    assert max(map(len, EMBEDDER._words)) <= static_embedder.LONGEST_WORD


def test_many_texts_are_embedded_in_order_across_batches() -> None:
    texts = [f"note number {number}" for number in range(600)]
    vectors = EMBEDDER.embed(texts)
    np.testing.assert_allclose(vectors[599], EMBEDDER.embed([texts[599]])[0], atol=1e-6)


def test_only_the_beginning_of_a_huge_text_counts() -> None:
    head = "coffee roasting " * 4000
    assert len(head) > static_embedder.MAX_CHARACTERS
    vectors = EMBEDDER.embed([head, head + "a wholly different ending about glaciers " * 4000])
    assert np.array_equal(vectors[0], vectors[1])


def test_characters_that_utf_8_cannot_carry_do_no_harm() -> None:
    assert np.isclose(np.linalg.norm(EMBEDDER.embed(["broken \ud800 name"])[0]), 1.0)


def test_threads_may_share_one_embedder() -> None:
    texts = [f"thought {number} about rivers" for number in range(200)]
    expected = EMBEDDER.embed(texts)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(EMBEDDER.embed, [texts] * 8):
            assert np.array_equal(vectors, expected)


def test_the_package_that_ships_the_vectors_is_not_imported() -> None:
    code = (
        "import sys, logging; from memctl.models import load_embedder, BUILTIN_EMBEDDER as b;"
        "load_embedder(b).embed(['x']);"
        "assert 'wordllama' not in sys.modules; assert not logging.getLogger().handlers"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_can_embed_without_a_warning() -> None:
    code = (
        "import os; from memctl.models import load_embedder, BUILTIN_EMBEDDER as b;"
        "e = load_embedder(b); e.embed(['x'] * 50); pid = os.fork();"
        "e.embed(['y'] * 50); os._exit(0) if not pid else os.waitpid(pid, 0)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_embedder_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        load_embedder("builtin/wordlama-256")
    assert BUILTIN_EMBEDDER in caught.value.hint


def pretend_the_package_is_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModuleSpec(static_embedder.PACKAGE, None, origin=str(folder / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_one_is_shared_by_all_of_a_process() -> None:
    """Each search asks for it, to judge words by, where an endpoint embeds the passages."""
    assert load_embedder(BUILTIN_EMBEDDER) is load_embedder(BUILTIN_EMBEDDER)


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MemctlError, match="not installed") as caught:
        load_embedder(BUILTIN_EMBEDDER)
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize("broken", [static_embedder.TOKENIZER_FILE, static_embedder.WEIGHTS_FILE])
@pytest.mark.parametrize("content", [None, b"", b"not a model at all", b"\xff" * 9])
def test_a_missing_or_damaged_file_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Path, content: bytes | None
) -> None:
    real = Path(str(importlib.util.find_spec(static_embedder.PACKAGE).origin)).parent  # type: ignore[union-attr]
    for file in (static_embedder.TOKENIZER_FILE, static_embedder.WEIGHTS_FILE):
        (tmp_path / file).parent.mkdir(parents=True)
        if file != broken:
            (tmp_path / file).symlink_to(real / file)
        elif content is not None:
            (tmp_path / file).write_bytes(content)
    pretend_the_package_is_in(tmp_path, monkeypatch)
    with pytest.raises(MemctlError, match=broken.name) as caught:
        load_embedder(BUILTIN_EMBEDDER).embed(["coffee"])
    assert "reinstall" in caught.value.hint
