"""The sentence patterns that speak for a statement worth remembering.

Each accepting pattern is a clear signal on its own: what only may be worth it is left out,
because a memory full of chat is worth less than one that misses a thing.
"""

from __future__ import annotations

import re

from memctl.understand.fact_patterns import FACTS, OBSERVATIONS
from memctl.understand.pattern import NAME, WHEN, pattern

_I = re.IGNORECASE

# --- said outright: "remember: ..." ---------------------------------------------------------------

LABEL = re.compile(
    r"(?:(?:\*\*|__|\W{0,2}\b(?:ok|so|and|also|please|oh|btw|just)\b,? )*)?"
    r"(?:\*\*|__)?(?P<label>remember|reminder|don['’]t forget|do not forget|important|attention|"
    r"warning|critical|note to self|nota bene|fyi|for the record|key (?:fact|point)|fact|decision|"
    r"decided|agreed|resolved|to-?do|action(?: item)?|next steps?|plan|lessons? learn(?:ed|t)|"
    r"learn(?:ed|t)|til|observation|finding|preference|merken?|wichtig|entscheidung|aufgabe|"
    r"important[e]?|décision|decisión|recuerda|à retenir)(?:\*\*|__)?"
    r"(?:\s?[:!–—]|\s-|,)(?:\*\*|__)?\s+",
    _I,
)
LABELLED = {
    "remember": "important_fact", "reminder": "important_fact", "don't forget": "important_fact",
    "do not forget": "important_fact", "important": "important_fact", "wichtig": "important_fact",
    "attention": "important_fact", "warning": "important_fact", "critical": "important_fact",
    "importante": "important_fact", "recuerda": "important_fact", "à retenir": "important_fact",
    "merke": "important_fact", "merken": "important_fact", "note to self": "fact",
    "nota bene": "fact", "fyi": "fact", "for the record": "fact", "key fact": "fact",
    "key point": "fact", "fact": "fact", "decision": "decision", "decided": "decision",
    "agreed": "decision", "resolved": "decision", "entscheidung": "decision",
    "décision": "decision", "decisión": "decision", "todo": "plan", "to-do": "plan",
    "action": "plan", "action item": "plan", "next step": "plan", "next steps": "plan",
    "plan": "plan", "aufgabe": "plan", "lesson learned": "observation",
    "lessons learned": "observation", "lesson learnt": "observation",
    "lessons learnt": "observation", "learned": "observation", "learnt": "observation",
    "til": "observation", "observation": "observation", "finding": "observation",
    "preference": "preference",
}  # fmt: skip

TOLD_TO_REMEMBER = re.compile(
    r"(?:(?:please|just|also|and|so|but|oh|ok(?:ay)?|always)[, ]+)*"
    r"(?:remember|don['’]t forget|do not forget|keep in mind|bear in mind|please note|note)"
    r"(?:(?: that|,)? (?=(?:I|I['’]m|I['’]ve|my|our|we|we['’]re)\b)"
    r"|,? that (?!time\b|day\b|night\b|one\b|moment\b|guy\b|feeling\b|it['’]?s\b)"
    r"(?=.*(?:\d|day\b|\s(?-i:[A-Z][a-z]))))"
    r"(?=.*\b(?:is|are|was|were|am|has|have|had|needs?|wants?|can|cannot|will|must|always|never|"
    r"takes?|likes?|loves?|prefers?|works?|lives?|goes|go|do|does|eats?|drinks?|buys?|uses?|"
    r"starts?|leaves?|gets?|closes?|opens?|ends?)\b|.*\w['’](?:m|re|ve|ll|t|s)\b)",
    _I,
)

# --- decisions ------------------------------------------------------------------------------------

_BEFORE_US = (
    r"(?:(?:After|Following|Because|Given|Due|In|On|At|Last|Yesterday|Today|Therefore|Thus|Hence|"
    r"Then|"
    r"Finally|Eventually|As|For|With|Having|Once)\b.{0,200}?[ ,]+|[^,]{0,80}, |[Ss]o |[Aa]nd |"
    r"[Bb]ut )?"
)
_WHO = (
    rf"(?:^{_BEFORE_US}(?:I|[Ww]e)|(?<!from )(?<!of )\b[Tt]he (?:[a-z]+ )?(?:team|board|"
    rf"committee|council|group|"
    rf"company|"
    r"family|parents|members|management|jury|club|department|project)"
    rf"|\b(?!They|He|She|It){NAME}(?: and {NAME})?)"
)
_HAVE = (
    r"(?:['’]ve| have| has| had| both| all| also| now| finally| just| unanimously| already| then|"
    r" eventually)*"
)

_LEISURE = (
    r"(?!\w+ (?:it|them|him|her|that|this|you)\b)"
    r"(?!(?:\w+ly )?(?:go|watch|have|try|cook|bake|eat|order|grab|take a|pick up|check|stop by|"
    r"play|see|make (?:it|the)|get|do|"
    r"give|just|start (?:a|the|watching|reading|with)|freshen|ghost|meet)\b)"
)
"""What people decide in passing, when they tell of their day."""

DECISIONS = (
    pattern(
        "decision",
        "decided",
        "decided resolved opted voted elected",
        rf"{_WHO}{_HAVE} (?:decided|resolved|opted|voted|elected) "
        r"(?:last \w+ |yesterday |today |together |unanimously )?"
        rf"(?:not )?(?:to {_LEISURE}|that |on (?!it\b|that\b|this\b|some\b|\w+ing\b)|against |for |"
        r"in favou?r of )\w+ ?\S+",
        0.9,
        0.75,
    ),
    pattern(
        "decision",
        "agreed",
        "agreed",
        rf"{_WHO}{_HAVE} agreed (?:last \w+ |yesterday |today |on \w+ )?"
        r"(?:(?:not )?to (?!disagree)|that |on (?!it\b|that\b|this\b|a few))\w+ \S+",
        0.85,
        0.7,
    ),
    pattern(
        "decision",
        "it was decided",
        "decided agreed resolved settled",
        r"\b[Ii]t (?:was|has been|is) (?:decided|agreed|resolved|settled)\b(?: (?:to|that)\b|,)",
        0.9,
        0.75,
    ),
    pattern(
        "decision",
        "settled",
        "settled decided",
        r"\b(?:[Ii]t['’]s|that['’]s|[Tt]hen it is) (?:settled|decided)(?: then)?[,:;–-]+ \w+ \w+",
        0.85,
        0.7,
    ),
    pattern(
        "decision",
        "we chose",
        "chose chosen settled picked went opted",
        r"^(?:[\w ,]{0,30}, )?(?:I|[Ww]e)(?:['’]ve| have)?(?: finally)? "
        r"(?:chose|chosen|settled on|opted for) "
        r"(?!to\b|it\b|that\b|this\b|you\b|him\b|her\b|them\b)\w+ \S+",
        0.8,
        0.65,
    ),
    pattern(
        "decision",
        "going with",
        "going dropping switching cancelling canceling",
        r"^(?:ok(?:ay)?,? |so |alright,? |right,? |then )*"
        r"(?:[Ww]e['’]re|[Ww]e are|I['’]m|I am) (?:going with|dropping|switching to|cancelling|"
        r"canceling|going to (?:drop|cancel|switch|stop|discontinue)) (?!it\b|that\b|you\b|"
        r"them\b)\w+ \S+",
        0.8,
        0.65,
    ),
    pattern(
        "decision",
        "let's go with",
        "go",
        r"^(?:[Oo]k(?:ay)?,? |[Ss]o |[Aa]lright,? |[Rr]ight,? |[Tt]hen )*"
        r"[Ll]et['’]?s go with (?!it\b|that\b|this\b|the flow|you\b)\w+ \S+",
        0.75,
        0.6,
    ),
)

UNDER_DECISION_HEADING = re.compile(r"\b(?:decisions?|outcome|resolution|resolved)$", _I)
WE_WILL = re.compile(
    r"^(?:[Ww]e|I)(?:['’]ll| will| are going to| shall) (?:not |no longer )?\w+ \w+"
)

# --- preferences ----------------------------------------------------------------------------------

_NOT_A_TASTE = (
    r"(?!(?:(?! but | because |[,;.!]).)*\b(?:it|them|they|there|those|these|that|this|both|ones?|"
    r"you|your|yours|yourself|everyone|ideas?|things? up|too much|stuff|him+|every time|my "
    r"\w+(?=\W*$))\b)"
    r"(?!him\b|her\b|his\b|their\b|how\b|when\b|what\b|where\b|everything\b|all\b|so\b|too\b|"
    r"to (?:hear|see|know|think|join|come|help|go|be|do|say|ask|add|try|point|chat|talk|have|get|"
    r"meet|catch|share|look)\b|hearing\b|seeing\b|being\b|talking\b|having\b|chatting\b|looking\b|"
    r"getting\b|doing\b|a lot\b|me\b|us\b|our\b|anything\b|nothing\b|some\b|any\b|such\b|each\b|"
    r"working (?:with|together)|spending time|a good\b|a great\b|a mix\b|an? \w+ (?:too|as well)\b)"
)
"""Objects that are no taste of their own: what was just spoken of, courtesy, talk."""

_LIKED = rf"(?!the (?!.*[A-Z\"“])){_NOT_A_TASTE}"
"""For words as light as "like": the thing liked must be named."""

PREFERENCES = (
    pattern(
        "preference",
        "I prefer",
        "prefer rather",
        r"\bI(?: really| still| actually| usually| generally| always| much| would|['’]d| "
        r"definitely| personally)* "
        rf"(?:prefer|rather have|rather eat|rather use|rather drink) {_NOT_A_TASTE}\w+",
        0.9,
        0.6,
    ),
    pattern(
        "preference",
        "I like",
        "love like hate dislike adore enjoy loathe detest",
        r"^(?:\w+ ?(?:,|and|but) )?(?:[Aa]nd |[Bb]ut |[Aa]ctually,? |[Hh]onestly,? |"
        r"[Pp]ersonally,? )?"
        r"I(?: really| absolutely| still| always| just| truly| actually)* "
        rf"(?:love|like|hate|dislike|adore|enjoy|loathe|detest) {_LIKED}\w+",
        0.75,
        0.5,
    ),
    pattern(
        "preference",
        "I can't stand",
        "stand bear like enjoy eat drink care",
        r"\bI(?: really| still| just| absolutely)* (?:can['’]?t stand|cannot stand|can['’]t bear|"
        r"do(?:n['’]t| not)(?: really| even)? (?:like|enjoy|eat|drink|care for)) "
        rf"{_NOT_A_TASTE}\w+",
        0.8,
        0.55,
    ),
    pattern(
        "preference",
        "favourite",
        "favourite favorite",
        r"(?<!what )(?<!which )(?<!of )\b(?:[Mm]y|[Oo]ur) (?:all[- ]time |absolute |personal "
        r")?favou?rite \w[\w' -]{0,40}? "
        r"(?:is|are|was|has always been|will always be) (?:still |probably |definitely |always )?"
        r"(?!when\b|how\b|so\b|the one\b|to\b|that\b|this\b|it\b|though\b|definite?ly\b)\w+",
        0.85,
        0.55,
    ),
    pattern(
        "preference",
        "someone prefers",
        "prefers loves hates dislikes stand adores like eat drink",
        rf"^(?!He\b|She\b|It\b|They\b|This\b|That\b|Who\b|Everyone\b|Nobody\b|Everybody\b|One\b)"
        rf"{NAME} (?:really |still |always |also )?(?:prefers|loves|hates|dislikes|can['’]t stand|"
        rf"adores|doesn['’]t (?:like|eat|drink)) {_NOT_A_TASTE}\w+",
        0.8,
        0.5,
    ),
    pattern(
        "preference",
        "a fan of",
        "fan",
        r"\bI(?:['’]m| am)(?: not)?(?: really)? (?:a (?:big|huge) fan|not a fan|a fan) of "
        rf"{_LIKED}\w+",
        0.75,
        0.5,
    ),
)

# --- plans ----------------------------------------------------------------------------------------

_NOT_A_PLAN = (
    r"(?!see\b|have to\b|make it\b|grab some\b|let\b|think\b|try\b|talk\b|catch\b|keep\b|check\b|"
    r"ask you\b|tell you\b|text\b|"
    r"call you\b|be (?!away|out|back|off|on leave|on holiday|in [A-Z])|know\b|remember\b|miss\b|"
    r"definitely\b|make sure\b|look\b|love\b|get back\b|take a look\b|need to\b|have to think|"
    r"chat\b|hear\b|probably\b|maybe\b|never\b|always\b|show you\b|give it\b|say\b|bet\b|"
    r"feel\b|regret\b|wait\b|have fun\b|have a (?:blast|great|good)|pray\b|hope\b)"
)

PLANS = (
    pattern(
        "plan",
        "I will, with a time",
        "ll will shall gonna going",
        rf"\b(?:I|[Ww]e)(?:['’]ll| will| shall|['’](?:m|re) going to| am going to| are going to|"
        rf"['’](?:m|re) gonna) (?:also |then |not )?{_NOT_A_PLAN}\w+ (?:.*?){WHEN}",
        0.75,
        0.55,
    ),
    pattern(
        "plan",
        "I am doing, with a time",
        "flying moving visiting meeting travelling traveling leaving starting going getting "
        "presenting launching hosting releasing selling buying closing opening having organising "
        "organizing",
        r"\b(?:I|[Ww]e)(?:['’](?:m|re)| am| are) (?:flying|moving|visiting|meeting|travell?ing|"
        r"leaving|starting|going to [A-Z]\w+|going|getting married|presenting|launching|hosting|"
        rf"releasing|selling|buying|closing|opening|having|organi[sz]ing) (?:.*?){WHEN}",
        0.75,
        0.55,
    ),
    pattern(
        "plan",
        "plan to",
        "plan planning intend intending aim aiming scheduled",
        r"(?<!time )\b(?:I|[Ww]e)(?:['’](?:m|re)| am| are)?(?: also| still| now)* "
        r"(?:plan(?:ning)?|intend(?:ing)?|aim(?:ing)?|scheduled) "
        r"(?!.*\b(?:it|them|that|there|you|your)\b)"
        r"(?:to (?!go with|be (?:careful|honest))|on )\w+ \S+",
        0.75,
        0.5,
    ),
    pattern(
        "plan",
        "someone will, with a time",
        "will going",
        rf"^(?!He\b|She\b|It\b|They\b|This\b|That\b|Who\b|Everyone\b|Nobody\b|You\b|The\b|If\b)"
        rf"{NAME}(?: and {NAME})? (?:will|is going to|are going to) {_NOT_A_PLAN}\w+ "
        rf"(?:.*?){WHEN}",
        0.75,
        0.55,
    ),
    pattern(
        "plan",
        "next meeting",
        "next",
        r"^(?:[Tt]he |[Oo]ur |[Mm]y )?[Nn]ext (?:\w+ )?(?:meeting|appointment|session|call|review|"
        rf"check-?up|visit|release|exam|lesson|rehearsal)\b.*?(?:{WHEN}|\d)",
        0.8,
        0.55,
    ),
)

PATTERNS = (*DECISIONS, *PREFERENCES, *OBSERVATIONS, *FACTS, *PLANS)

SELF_CONTAINED = frozenset({"it was decided", "settled"})
"""Patterns that may begin with a pronoun that stands for nobody."""
