"""Triggers: what a user asks to be kept, and what only looks like it."""

from __future__ import annotations

from time import process_time

import pytest
from trigger_sentences import FACTS, MEMORIES, TRAPS

from memctl.config import TriggerSettings
from memctl.understanding.triggers import detect_trigger, kept_statement, stated_text


def test_the_default_phrases_are_those_that_are_tried_here() -> None:
    assert TriggerSettings().memory == tuple(MEMORIES)
    assert TriggerSettings().fact == tuple(FACTS)


@pytest.mark.parametrize("phrase", [*MEMORIES, *FACTS])
def test_a_phrase_in_a_natural_sentence_keeps_one_memory_of_its_type(phrase: str) -> None:
    message = {**MEMORIES, **FACTS}[phrase]
    found = detect_trigger(message)
    assert found.detected
    assert found.text
    assert found.phrase == phrase
    assert found.memory_type == ("memories" if phrase in MEMORIES else "important_fact")
    assert message[found.start : found.end].endswith(found.text[-10:])


@pytest.mark.parametrize("message", TRAPS)
def test_what_only_looks_like_a_phrase_keeps_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


def test_a_label_keeps_what_follows_it_without_its_tags() -> None:
    found = detect_trigger("important: always use Python 3.10+ for this project #beto_coding")
    assert (found.memory_type, found.text, found.tags) == (
        "important_fact",
        "always use Python 3.10+ for this project",
        ("coding",),
    )


@pytest.mark.parametrize("written", ["#beto_coding", "@beto_coding", "#coding"])
def test_a_tag_is_found_however_it_is_written(written: str) -> None:
    found = detect_trigger(f"remember: {written} use tabs")
    assert (found.text, found.tags) == ("use tabs", ("coding",))


def test_a_tag_that_is_a_word_of_its_sentence_keeps_the_word() -> None:
    found = detect_trigger("remember: the tap in the #kitchen drips #home")
    assert (found.text, found.tags) == ("the tap in the kitchen drips", ("kitchen", "home"))


def test_the_phrase_that_stands_first_decides() -> None:
    assert detect_trigger("Remember: we built the shed in May").memory_type == "important_fact"
    assert detect_trigger("We built it. Remember: paint it").memory_type == "memories"


def test_of_two_phrases_at_one_place_the_longer_decides() -> None:
    settings = TriggerSettings(memory=("save this",), fact=("save this design",))
    assert detect_trigger("save this design", settings).memory_type == "important_fact"
    both = TriggerSettings(memory=("log it:",), fact=("log it:",))
    assert detect_trigger("log it: done", both).memory_type == "memories"


def test_own_phrases_take_the_place_of_the_defaults() -> None:
    settings = TriggerSettings(memory=("document this",), fact=("critical information",))
    assert detect_trigger("Please document this: two rooms", settings).text == "two rooms"
    assert not detect_trigger("important: two rooms", settings).detected


def test_a_message_that_points_back_means_the_one_before_it() -> None:
    for message in ("remember this", "Save that please #beto_x", "Let's save this", "keep that"):
        assert detect_trigger(message).reference_previous
    assert not detect_trigger("save this design: two rooms, one door").reference_previous


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("I'm vegan, please remember that", "I'm vegan"),
        ("We decided that the API speaks JSON. Remember that! #api", "We decided that the API"),
        ("Hi.\n\nThe garden gate sticks.\n\nNote that down please.", "The garden gate sticks"),
        ("I'm allergic to nuts, keep that in mind when you suggest food", "I'm allergic to nuts"),
        ("I live in Graz. Can you remember that?", "I live in Graz"),
        ("Ich bin Vegetarierin, merk dir das bitte.", "Ich bin Vegetarierin"),
        ("Je suis végétarien, retiens ça", "Je suis végétarien"),
        ("It's my birthday on 3 May, remember that.", "It's my birthday on 3 May"),
        ("This Friday is my mother's birthday, remember that.", "This Friday is my mother's"),
        ("My address is 5 Elm St, Ulm, please remember this", "My address is 5 Elm St, Ulm"),
        ("Thanksgiving is at our place this year, remember that", "Thanksgiving is at our place"),
        ("My code is 4711 and Ann knows that, remember this", "My code is 4711 and Ann knows that"),
        ("It's cancelled, remember that", "It's cancelled"),
        ("Soy vegano, recuerda esto", "Soy vegano"),
        ("Sono vegano, ricorda questo", "Sono vegano"),
        ("Bin Veganer, merk dir das", "Bin Veganer"),
    ],
)
def test_the_last_words_of_a_message_keep_what_it_says_before_them(message: str, text: str) -> None:
    kept = kept_statement(message, ["The cat is ill."])
    assert kept is not None
    assert kept.text.startswith(text)
    assert (kept.type, kept.from_previous) == ("important_fact", False)


@pytest.mark.parametrize(
    "message",
    [
        "lol. remember that one!",
        "Thank you so much! Remember that.",
        "That is a really good one, remember that",
        "Das ist gut, merk dir das",
        "ok, remember that",
        "yes. remember that",
        "ja, genau, merk dir das",
        "haha, remember that",
        "😂 - remember that",
    ],
)
def test_what_only_replies_before_the_last_words_means_the_message_before(message: str) -> None:
    kept = kept_statement(message, ["The cat is ill."])
    assert kept is not None
    assert (kept.text, kept.from_previous) == ("The cat is ill.", True)


@pytest.mark.parametrize(
    "message",
    [
        "Thanks, I'll remember that.",
        "No, don't remember that.",
        "Open the file, fix line 3, then save it.",
        "What is the capital of Malta? Remember that.",
        "My brother told me, remember that.",
        "```\nThe gate is green, remember that\n```",
        "We went to Rome in 2010 and it rained all week. Remember that?",
        "We went to Rome in 2010, remember that?",
        "We went to Rome in 2010, remember this?!",
        "Wir waren 2010 in Rom, merk dir das?",
    ],
)
def test_last_words_that_do_not_ask_for_it_keep_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


@pytest.mark.parametrize("message", ["I'm vegan", "I'm vegan, remember that"])
def test_spaces_at_the_end_of_a_message_are_passed_over_at_once(message: str) -> None:
    begin = process_time()
    assert detect_trigger(message + " " * 50_000).text == detect_trigger(message).text
    assert process_time() - begin < 2


def test_how_something_is_to_be_kept_is_nothing_to_keep() -> None:
    for message in ("keep it: short", "Keep it: short and simple!"):
        assert not detect_trigger(message).detected
    assert detect_trigger("keep it: the gate code is 4711").text == "the gate code is 4711"


def test_what_is_asked_for_ends_before_a_question() -> None:
    found = detect_trigger("note this: the code is 4711. It changes in May. Who knows it?")
    assert found.text == "the code is 4711. It changes in May."


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("#beto_coding important: always use Python 3.10", "always use Python 3.10"),
        ("@beto_coding remember: water the plants", "water the plants"),
        ("1. important: buy milk", "buy milk"),
        ("2) remember: oil the hinge", "oil the hinge"),
        ("- [ ] important: oil the hinge", "oil the hinge"),
        ("Could you note this: the courier comes on Tuesdays.", "the courier comes on Tuesdays."),
    ],
)
def test_a_label_is_found_behind_a_tag_or_the_number_of_an_item(message: str, text: str) -> None:
    found = detect_trigger(message)
    assert (found.memory_type, found.text) == ("important_fact", text)


@pytest.mark.parametrize(
    "message",
    [
        "Can you save this design?",
        "Could you save our work on the parser module.",
        "Could you store this idea",
        "Could you remember this conversation?",
        "Can you remember this?",
        "Would you remember this conversation for the next trip?",
    ],
)
def test_a_polite_request_needs_no_please(message: str) -> None:
    assert detect_trigger(message).detected


@pytest.mark.parametrize(
    "message",
    [
        "Can you remember what we said?",
        "Do you remember this song?",
        "Can you remember this song?",
        "Can you remember this conversation from last week?",
        "Could you explain why we designed it so?",
        "Should we store this idea?",
        "We designed nothing.",
        "We built no shed.",
        "My wife says I always do that.",
        "She told me that our plan for Sunday was dull.",
    ],
)
def test_questions_negated_objects_and_reported_speech_keep_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


def test_what_the_user_reports_of_themselves_is_kept() -> None:
    for message in ("I think we built it well.", "As I said we built it in May."):
        assert detect_trigger(message).text == message


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Remember this: the wifi code is hunter2", "the wifi code is hunter2"),
        ("can you remember this for me: my badge is 8812", "my badge is 8812"),
        ("I want you to remember this: our rate is 90 euros", "our rate is 90 euros"),
        ("note this - the database is on port 5433", "the database is on port 5433"),
        ("Key detail – the gate closes at eight", "the gate closes at eight"),
        ("remember that I'm vegetarian", "I'm vegetarian"),
        ("Hi Claude, please remember that our office moved.", "our office moved."),
        ("remember my dentist is Dr. Okafor", "my dentist is Dr. Okafor"),
        ("Could you please remember that Eva comes on Friday?", "Eva comes on Friday"),
        ("Don't forget that rent goes up in March. Write a poem.", "rent goes up in March."),
        ("don't forget: the keys are with Ana", "the keys are with Ana"),
        ("**Important:** the key rotates monthly", "the key rotates monthly"),
        ("- **Important**: the key rotates monthly", "the key rotates monthly"),
        ("critical info:\n- the key is here\n- alarm 12", "- the key is here\n- alarm 12"),
        ("Important:\nThe key is here.\nAlarm 12.\n\nNow?", "The key is here.\nAlarm 12."),
    ],
)
def test_a_label_is_found_as_people_write_it(message: str, text: str) -> None:
    found = detect_trigger(message)
    assert (found.memory_type, found.text) == ("important_fact", text)
    assert stated_text(message.partition(". Write")[0]).type == "important_fact"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "Here's our plan for the garden:\n- dig\n- plant\n\nOK?",
            "Here's our plan for the garden:\n- dig\n- plant",
        ),
        (
            "We built it in two steps:\nFirst the base.",
            "We built it in two steps:\nFirst the base.",
        ),
        ("Please save this: the gate code is 4471", "the gate code is 4471"),
        ("Can you store this for me: the gate is shut", "the gate is shut"),
        ("Keep this in mind: deploys are on Tuesdays", "deploys are on Tuesdays"),
    ],
)
def test_what_a_phrase_stands_above_or_before_is_kept(message: str, text: str) -> None:
    found = detect_trigger(message)
    assert (found.memory_type, found.text) == ("memories", text)
    assert not found.reference_previous


def test_what_asks_for_a_clause_to_be_kept_leaves_what_is_stored() -> None:
    assert stated_text("Please remember that the rent is 900 euros").text == "the rent is 900 euros"


@pytest.mark.parametrize(
    "message",
    [
        "remember my name",
        "remember that time we went to Rome",
        "Remember I told you about the lease?",
        "Can you remember that we met in Rome?",
        "I don't remember that we said this at all",
        "Don't forget to call Bob about the roof",
        '"remember that I am the king" he said',
        "memory:\n  limit: 512Mi\n  cpu: 2",
        "Important:\n\nthe key",
        "fact - nobody came",
    ],
)
def test_what_is_no_label_however_people_write_it_keeps_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Merk dir: der Schlüssel liegt beim Nachbarn", "der Schlüssel liegt beim Nachbarn"),
        ("Bitte merk dir, dass ich in Graz wohne", "ich in Graz wohne"),
        ("Ok, wichtig: Abgabe am Freitag", "Abgabe am Freitag"),
        ("Retiens que la clé est chez Kerbrat", "la clé est chez Kerbrat"),
        ("N’oublie pas qu’il est allergique aux noix", "il est allergique aux noix"),
        ("À retenir : la clé est ici", "la clé est ici"),
        ("Recuerda que soy vegetariana", "soy vegetariana"),
        ("Por favor, no olvides que Ana llega el lunes", "Ana llega el lunes"),
        ("Ricordati: il codice è 4711", "il codice è 4711"),
        ("Não esqueça que a Ana é alérgica", "a Ana é alérgica"),
        ("Onthoud dat ik vegetariër ben", "ik vegetariër ben"),
    ],
)
def test_a_request_in_another_language_keeps_what_follows_it(message: str, text: str) -> None:
    found = detect_trigger(message)
    assert (found.memory_type, found.text) == ("important_fact", text)
    assert stated_text(message).text == text
    assert not detect_trigger(message, TriggerSettings(fact=("key detail:",))).detected


@pytest.mark.parametrize(
    "message",
    [
        "Ich kann mir nicht merken, dass er kommt",
        "Was soll ich mir merken?",
        "Vergiss nicht, Brot zu kaufen",
        "Je retiens que tu viens",
        "¿Recuerdas que te lo dije?",
        "Él recuerda que llovía mucho",
    ],
)
def test_what_is_no_request_in_another_language_keeps_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


def test_without_its_label_no_other_way_to_say_it_counts() -> None:
    settings = TriggerSettings(fact=("important:",))
    assert not detect_trigger("remember that I'm vegetarian", settings).detected


def test_a_reference_back_skips_messages_that_only_refer_back() -> None:
    said = ("Could you please remember this conversation?", "The frame is of cedar.")
    kept = kept_statement("Let\u2019s save this design!", said)
    assert kept is not None
    assert (kept.text, kept.from_previous, kept.steps) == ("The frame is of cedar.", True, 2)


def test_what_points_back_goes_ten_messages_back_at_most() -> None:
    said = iter([*["remember this"] * 12, "The frame is of cedar."])
    assert kept_statement("save this", said) is None
    assert len(list(said)) == 3
    near = [*["remember this"] * 9, "The frame is of cedar."]
    kept = kept_statement("save this", near)
    assert kept is not None
    assert kept.steps == 10


def test_a_message_with_content_of_its_own_does_not_point_back() -> None:
    message = "Please save this design with the round table."
    kept = kept_statement(message, ["The cat is ill."])
    assert kept is not None
    assert (kept.text, kept.from_previous) == (message, False)
    built = kept_statement("We built a tool to record it.", ["The cat is ill."])
    assert built is not None
    assert not built.from_previous


def test_a_phrase_of_your_own_that_stands_alone_points_back() -> None:
    settings = TriggerSettings(memory=("document this", "pin that"), fact=("note down",))
    for message in ("Document this", "Please document this!", "pin that", "note down #home"):
        kept = kept_statement(message, ["The frame is of cedar."], settings)
        assert kept is not None
        assert kept.text == "The frame is of cedar."


@pytest.mark.parametrize(
    "text",
    [
        "Our channel is #general",
        "Unser Kanal ist #general",
        "Our channels: #general, #random",
        "#general is our channel",
        "I posted it for #billing, who moved the deploy",
        "Use #include <stdio.h>\n    #define X 1\nin C",
        "a  table   #of  spaces",
    ],
)
def test_no_word_of_a_sentence_and_no_space_is_lost(text: str) -> None:
    kept = stated_text(text).text
    assert kept.replace("#", "") == text.replace("#", "")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("remember: water the plants #garden", "water the plants"),
        ("remember: water the plants #garden #home.", "water the plants."),
        ("important: oil the hinge #a #b", "oil the hinge"),
        ("#garden #home Water the plants", "Water the plants"),
        ("@beto_a and #b say: the #c x #beto_d, #beto_e goes", "and b say: the c x goes"),
        ("Our channel is #general #beto_chat", "Our channel is #general"),
    ],
)
def test_tags_at_the_beginning_and_end_that_no_sentence_needs_leave_it(
    text: str, kept: str
) -> None:
    assert stated_text(text).text == kept


@pytest.mark.parametrize(
    "text",
    [
        "No, " * 3_000 + "I remember it",
        "please " * 3_000,
        "Ann, please, " * 3_000 + "the the the",
        "- [ ] " * 3_000 + "fact",
        "can you " * 3_000,
        "I want you to " * 3_000 + "remember" + " this for me" * 3_000,
        "remember my " + "old " * 3_000,
    ],
)
def test_many_possible_beginnings_of_a_label_do_not_stall_the_reader(text: str) -> None:
    """Read in every way that there is, this would not come to an end."""
    assert not detect_trigger(text).detected


@pytest.mark.parametrize(
    "text",
    [
        "We built " * 3_000,
        "x" * 60_000 + " we built it",
        *(f"{mark} " * 60_000 + "\nWe built it" for mark in "«„“‘'"),
    ],
)
def test_a_phrase_is_found_after_a_very_long_text(text: str) -> None:
    assert detect_trigger(text).detected


def test_many_tags_are_read_in_one_pass() -> None:
    """Looking through all of the text before each, this would take minutes."""
    row = "the shed #home "
    assert detect_trigger("remember: " + row * 20_000).text.startswith("the shed #home the")
    assert detect_trigger("remember: x" + " #a #b" * 10_000).text == "x"
