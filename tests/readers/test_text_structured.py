"""JSON, JSON lines, YAML and XML become text that reads well, and bombs are refused."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.errors import UnreadableSource
from memctl.readers import read
from memctl.readers.data_files import structured_data
from memctl.readers.data_files.structured_data import array_elements
from memctl.records import SourceText


def _read(folder: Path, content: str, name: str) -> SourceText:
    path = folder / name
    path.write_text(content, "utf-8")
    [source] = read(path)
    return source


def _refusal(folder: Path, content: str, name: str) -> UnreadableSource:
    with pytest.raises(UnreadableSource) as raised:
        _read(folder, content, name)
    assert name in raised.value.message
    assert "\n" not in raised.value.message
    return raised.value


# --- JSON -----------------------------------------------------------------------------------------


def test_an_object_becomes_property_lines_under_their_path(tmp_path: Path) -> None:
    text = '{"title": "Crane", "spec": {"load": 1.50, "tags": ["a", "b"], "on": true, "x": null}}'
    source = _read(tmp_path, text, "x.json")
    assert source.text == "title: Crane\n\nload: 1.50\ntags: a, b\non: true\n\n"
    assert [s.heading for s in source.segments] == ["", "spec"]
    assert source.title == "Crane"


def test_a_list_of_objects_becomes_rows_with_nested_values(tmp_path: Path) -> None:
    people = [{"name": "Ann", "home": {"city": "Rome"}}, {"name": "Bob", "likes": ["tar", "rope"]}]
    source = _read(tmp_path, json.dumps({"people": people}), "x.json")
    assert source.text == "name: Ann; home.city: Rome\nname: Bob; likes: tar, rope\n"
    [segment] = source.segments
    assert (segment.kind, segment.row, segment.heading) == ("table", 1, "people")


def test_a_conversation_in_json_becomes_turns(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi\nthere", "timestamp": 1777629600},
             {"role": "assistant", "content": "Hello"}]  # fmt: skip
    source = _read(tmp_path, json.dumps({"messages": turns}), "x.json")
    assert [(s.kind, s.speaker) for s in source.segments] == [
        ("turn", "user"), ("turn", "assistant"),
    ]  # fmt: skip
    assert source.segments[0].said_at == datetime(2026, 5, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000,
             "[" * 500 + "]" * 500, '{"a": ' * 150 + "1" + "}" * 150]
)  # fmt: skip
def test_json_nested_beyond_reason_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    assert "nested deeper than 100 levels" in _refusal(tmp_path, text, "x.json").message


def test_json_nested_within_reason_is_read(tmp_path: Path) -> None:
    assert "deep" in _read(tmp_path, '{"a": ' * 90 + '"deep"' + "}" * 90, "x.json").text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "b": oops}', "line 2 column 7"),
        ("hello there\n", "line 1 column 1"),
        ('{"a": 1', "line 1 column 8"),
        ("[1, 2,]", "line 1 column"),
    ],
)
def test_a_json_file_that_is_none_says_where(tmp_path: Path, text: str, place: str) -> None:
    assert place in _refusal(tmp_path, text, "x.json").message


def test_numbers_are_kept_as_they_are_written(tmp_path: Path) -> None:
    text = '{"a": ' + "9" * 5000 + ', "b": 1.10, "c": 1e400, "d": NaN}'
    assert "b: 1.10\nc: 1e400\nd: nan" in _read(tmp_path, text, "x.json").text


def test_half_characters_are_replaced(tmp_path: Path) -> None:
    _read(tmp_path, '{"title": "\\ud800 x", "b": "\\u0000"}', "x.json").text.encode("utf-8")


# --- JSON lines -----------------------------------------------------------------------------------


def test_json_lines_are_rows_with_the_number_of_their_line(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": n, "name": f"part {n}"}) + "\n" for n in range(1, 301))
    source = _read(tmp_path, lines.replace('{"id": 200,', '\n{"id": 200,'), "x.jsonl")
    place = source.text.index("part 250")
    segment = next(s for s in source.segments if s.start <= place < s.end)
    assert segment.row is not None
    assert segment.row + source.text.count("\n", segment.start, place) == 251


def test_a_line_that_is_no_json_is_kept_as_it_is(tmp_path: Path) -> None:
    source = _read(tmp_path, '{"a": 1}\noops\n{"a": 3}\n', "x.jsonl")
    assert source.text == "a: 1\nline: oops\na: 3\n"
    assert source.missing == ("record of line 2 (not JSON, kept as text)",)


def test_lines_that_are_no_json_are_counted_and_the_first_are_numbered(tmp_path: Path) -> None:
    good = '{"a": 1}\n'
    few = _read(tmp_path, good + "\nno\n" + good + '{"a": 1', "x.jsonl")
    assert few.missing == ("records of 2 lines: 3, 5 (not JSON, kept as text)",)
    many = _read(tmp_path, good + "no\n" * 1200, "x.jsonl").missing
    assert many == (
        "records of 1,200 lines: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and more (not JSON, kept as text)",
    )
    assert _read(tmp_path, good + 'null\n3\n"no"\n[1]\n\n', "x.jsonl").missing == ()


def test_records_are_found_however_many_bad_lines_stand_before_them(tmp_path: Path) -> None:
    source = _read(tmp_path, "no\n" * 30 + '{"a": 1}\n', "x.jsonl")
    assert source.text.endswith("line: no\na: 1\n")


def test_a_conversation_with_a_bad_line_stays_one(tmp_path: Path) -> None:
    turns = [json.dumps({"role": who, "content": f"{who} says so"}) for who in ("ann", "bob")]
    source = _read(tmp_path, "\n".join(["oops", *turns]), "x.jsonl")
    assert [s.speaker for s in source.segments if s.kind == "turn"] == ["ann", "bob"]
    assert "oops" in source.text


def test_json_lines_without_any_json_are_refused(tmp_path: Path) -> None:
    assert "line 2 column 1" in _refusal(tmp_path, "\nno\nno\n", "x.jsonl").message


@pytest.mark.parametrize("depth", [101, 500, 100_000])
def test_a_bomb_in_a_line_is_kept_as_it_is_and_reported(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    source = _read(tmp_path, f'{{"a": 1}}\noops\n{deep}\n{{"a": 3}}\n', "x.jsonl")
    assert source.text.startswith("a: 1\nline: oops\n")
    assert source.text.endswith("a: 3\n")
    assert source.missing == (
        "record of line 2 (not JSON, kept as text)",
        "record of line 3 (nested deeper than 100 levels, kept as text)",
    )
    message = _refusal(tmp_path, f"\n{deep}\noops\n", "x.jsonl").message
    assert message == "x.jsonl: line 2 is nested deeper than 100 levels"


def test_a_line_as_deep_as_may_be_is_read(tmp_path: Path) -> None:
    deep = '{"a":' * 100 + "1" + "}" * 100
    assert _read(tmp_path, f"{deep}\n", "x.jsonl").missing == ()


def test_a_long_name_is_not_said_with_all_that_is_below_it(tmp_path: Path) -> None:
    values = ",".join(f'"{n}":1' for n in range(100))
    record = f'{{"{"k" * 100_000}":{{{values}}}}}'
    for text, name in ((record, "x.json"), (f"[{record}]", "x.json"), (record, "x.jsonl")):
        assert len(_read(tmp_path, text, name).text) < 20_000
    texts = "".join(f"<b{'k' * 100_000} a{n}='1'/>" for n in range(9))
    assert len(_read(tmp_path, f"<r>{texts}</r>", "x.xml").text) < 2_000


def test_the_points_of_a_line_are_rows_together(tmp_path: Path) -> None:
    points = ",".join(f"[{n}.5, {n}]" for n in range(300))
    source = _read(tmp_path, f'{{"line": [{points}]}}', "x.json")
    assert source.text.startswith("[0]: 0.5, 0\n[1]: 1.5, 1\n")
    assert {segment.heading for segment in source.segments} == {"line"}
    assert len(source.segments) < 20


# --- YAML -----------------------------------------------------------------------------------------


def test_yaml_values_are_kept_as_they_are_written(tmp_path: Path) -> None:
    source = _read(tmp_path, "name: Ann\non: no\nat: 10:30\nid: 007\nwhen: 2026-05-01\n", "x.yaml")
    assert source.text == "name: Ann\non: no\nat: 10:30\nid: 007\nwhen: 2026-05-01\n\n"


def test_a_yaml_list_of_mappings_becomes_rows(tmp_path: Path) -> None:
    source = _read(tmp_path, "crew:\n- name: Ann\n  role: captain\n- name: Bob\n", "x.yml")
    assert source.text == "name: Ann; role: captain\nname: Bob\n"
    assert source.segments[0].heading == "crew"


def test_several_yaml_documents_are_all_read(tmp_path: Path) -> None:
    source = _read(tmp_path, "---\nkind: A\n---\nkind: B\n", "x.yaml")
    assert source.text == "kind: A\nkind: B\n"


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n"
            for n in range(9)
        ),
        "a: &a {k: v}\n"
        + "".join(f"b{n}: &b{n} {{<<: [*{f'b{n - 1}' if n else 'a'}, *a]}}\n" for n in range(60))
        + "z: [" + ",".join(["*b59"] * 3000) + "]\n",
    ],
)  # fmt: skip
def test_alias_bombs_are_refused(tmp_path: Path, text: str) -> None:
    assert "aliases" in _refusal(tmp_path, text, "x.yaml").message


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: *nowhere\n", "a: &a {b: *a}\n"])
def test_an_alias_that_refers_to_itself_is_refused(tmp_path: Path, text: str) -> None:
    assert "alias" in _refusal(tmp_path, text, "x.yaml").message


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "\n".join(" " * n + "a:" for n in range(400)), "- " * 5000 + "x"]
)
def test_yaml_nested_beyond_reason_is_refused(tmp_path: Path, text: str) -> None:
    assert "nested deeper" in _refusal(tmp_path, text, "x.yaml").message


def test_yaml_tags_construct_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    source = _read(
        tmp_path, f'a: !!python/object/apply:os.mkdir ["{marker}"]\nb: !Ref Bucket\n', "x.yaml"
    )
    assert not marker.exists()
    assert "b: Bucket" in source.text


def test_broken_yaml_says_where(tmp_path: Path) -> None:
    assert "line 2 column" in _refusal(tmp_path, "a: [1, 2\nb: c: d\n", "x.yaml").message


# --- XML ------------------------------------------------------------------------------------------

CATALOG = """<?xml version="1.0"?>
<catalog xmlns="urn:x"><title>Books</title>
<book id="1"><author>Ann</author><price cur="EUR">3</price></book>
<book id="2"><author>Bob</author></book>
<chapter><title>Harbour</title><para>Tie the <b>rope</b> first.</para></chapter></catalog>"""


def test_xml_text_keeps_the_names_of_its_elements(tmp_path: Path) -> None:
    source = _read(tmp_path, CATALOG, "x.xml")
    assert source.title == "Books"
    assert "@id: 1; author: Ann; price: 3; price.cur: EUR\n@id: 2; author: Bob\n" in source.text
    last = source.segments[-1]
    assert source.text[last.start : last.end] == "Tie the rope first."
    assert last.heading == "catalog: Books > chapter: Harbour > para"


def test_a_long_flat_xml_file_keeps_every_record(tmp_path: Path) -> None:
    records = "".join(f"<r><n>{n}</n><w>word{n}</w></r>" for n in range(1, 2001))
    source = _read(tmp_path, f"<list>{records}</list>", "x.xml")
    assert all(f"n: {n}; w: word{n}\n" in source.text for n in (1, 200, 201, 202, 1000, 2000))
    place = source.text.index("word1500\n")
    segment = next(s for s in source.segments if s.start <= place < s.end)
    assert segment.row is not None
    assert segment.row + source.text.count("\n", segment.start, place) == 1500


def test_text_between_many_elements_is_not_lost(tmp_path: Path) -> None:
    text = "".join(f"<b>bold{n}</b> tail{n} " for n in range(500))
    source = _read(tmp_path, f"<p>{text}</p>", "x.xml")
    assert all(f"bold{n}" in source.text and f"tail{n}" in source.text for n in range(500))


@pytest.mark.parametrize(
    "text",
    [
        '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><l>&b;</l>',
        '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><l>&a;</l>',
    ],
)
def test_xml_that_defines_entities_is_refused(tmp_path: Path, text: str) -> None:
    assert "entities" in _refusal(tmp_path, text, "x.xml").message


def test_broken_and_bottomless_xml_is_refused_in_one_line(tmp_path: Path) -> None:
    broken = _refusal(tmp_path, "<?xml version='1.0'?>\n<a><b></a>", "x.xml").message
    assert "line 2 column" in broken
    deep = "<?xml version='1.0'?>" + "<a>" * 100_000
    assert "nested deeper" in _refusal(tmp_path, deep, "x.xml").message


# --- everything -----------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=8), v, max_size=4)
)


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [str(value)] if isinstance(value, str | int) and not isinstance(value, bool) else []


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=8), values, max_size=4))
def test_every_scalar_of_a_json_file_is_found_in_its_text(value: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.json")
        path.write_text(json.dumps({"first": "x", "rest": value}), "utf-8")
        text = " ".join("".join(source.text for source in read(path)).split())
    for leaf in _leaves(value):
        assert " ".join(leaf.replace("\0", "\ufffd").split()) in text


# --- a huge array ---------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(values, max_size=8), st.integers(1, 40), st.booleans())
def test_elements_streamed_from_an_array_are_those_of_the_array(
    items: list[object], size: int, indented: bool
) -> None:
    text = json.dumps(items, indent=1 if indented else None)
    blocks = (text[place : place + size] for place in range(0, len(text), size))
    expected = json.loads(text, parse_int=str, parse_float=str)
    assert list(array_elements(blocks)) == expected


@pytest.mark.parametrize(
    "text",
    ['[{"a": 1}\n, {"b": oops}]', '[{"a": 1}\n {"b": 2}]', '[{"a": 1},\n', '[{"a": 1}]\n x', "[1,]",
     '[{"a":\n\n"x}]'],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_streamed_array_that_is_broken_says_on_which_line(text: str, size: int) -> None:
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    blocks = (text[place : place + size] for place in range(0, len(text), size))
    with pytest.raises(UnreadableSource, match="it is not JSON") as raised:
        list(array_elements(blocks))
    assert f"line {expected.value.lineno} " in raised.value.message


def test_a_big_array_of_objects_gives_the_same_rows_as_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured_data, "STREAMED_JSON_BYTES", 1_000_000)
    items = [{"n": n, "words": f"word{n} " * 12} for n in range(12_000)]
    array, lines = tmp_path / "x.json", tmp_path / "x.jsonl"
    array.write_text(json.dumps(items))
    lines.write_text("".join(json.dumps(item) + "\n" for item in items))
    assert array.stat().st_size > structured_data.STREAMED_JSON_BYTES
    first, second = list(read(array)), list(read(lines))
    assert len(first) > 1
    assert [(s.text, s.segments) for s in first] == [(s.text, s.segments) for s in second]
