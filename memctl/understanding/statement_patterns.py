"""What a sentence pattern is, and the pieces that patterns are put together from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memctl.language.word_lists import word_set

NAME = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?"
MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
DAY = r"(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
WHEN = (
    rf"\b(?i:{DAY}s?|tomorrow|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}(?:st|nd|rd|th)?"
    rf"(?: of)? {MONTH}|(?:in|by|before|until|since|from|of|end of|early|late|mid) {MONTH}\b|"
    r"the \d{1,2}(?:st|nd|rd|th)|the (?:first|second|third|fourth|last) (?:week|day|of)|"
    r"(?:next|this|the following|coming) (?:week(?:end)?|month|year|spring|summer|autumn|fall|"
    r"winter|semester|term)|at (?:easter|christmas)|\d{4}-\d\d-\d\d|(?:in|by|until|since) 20\d\d|"
    r"by the end of|this (?:afternoon|evening|morning))\b"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``regex`` found in a sentence makes it a statement of ``type``."""

    type: str
    name: str
    words: frozenset[str]
    """Any sentence that ``regex`` finds has one of these words, in lower case."""
    regex: re.Pattern[str]
    confidence: float
    importance: float


def pattern(
    type_: str, name: str, having: str, regex: str, confidence: float, importance: float
) -> Pattern:
    """Make a pattern; ``having`` lists the words of which any match has one."""
    return Pattern(type_, name, word_set(having), re.compile(regex), confidence, importance)


# --- observations ---------------------------------------------------------------------------------

OBSERVATIONS = (
    pattern(
        "observation",
        "I noticed that",
        "noticed realised realized found observed discovered learned learnt measured concluded",
        r"\b(?:I|[Ww]e)(?:['’]ve| have)?(?: also| just| recently| then)* (?:noticed|reali[sz]ed|"
        r"found|observed|discovered|learn(?:ed|t)|measured|concluded)(?: out)?"
        r"(?: today| yesterday| recently)? that "
        r"(?!it\b|it['’]s|this\b|that\b|they\b|she\b|he\b|you\b|your\b|too\b|one\b|I need)\w+ "
        r"\S+ \S+",
        0.7,
        0.45,
    ),
    pattern(
        "observation",
        "it was shown that",
        "showed shows revealed found confirmed demonstrated suggests",
        r"^(?:[\w ,'’()-]{3,70}) (?:showed|shows|revealed|found|confirmed|demonstrated|suggests) "
        r"that "
        r".*\b(?:\d[\d.,]*|half|third|thirds|quarter|percent|per cent|most)\b",
        0.7,
        0.45,
    ),
    pattern(
        "observation",
        "observed",
        "observed noticed measured found",
        r"^(?:Observed|Noticed|Measured|Found) (?!by\b|in\b|on\b|at\b|from\b|to\b|with\b)\w+ \S+ "
        r"\S+ \S+",
        0.7,
        0.45,
    ),
    pattern(
        "observation",
        "in our tests",
        "test tests trial trials experiment experiments measurement measurements benchmark "
        "benchmarks survey",
        r"^In (?:our|my|the) (?:own )?(?:tests?|trials?|experiments?|measurements?|benchmarks?|"
        r"survey)"
        r",? .*\d",
        0.75,
        0.45,
    ),
)

# --- facts ----------------------------------------------------------------------------------------

_FAMILY = (
    r"(?:wife|husband|partner|fiancée?|girlfriend|boyfriend|sons?|daughters?|children|kids?|"
    r"sisters?|"
    r"brothers?|mother|mum|mom|father|dad|parents|grand(?:mother|father|ma|pa|son|daughter|"
    r"parents)|"
    r"gran|aunt|uncle|cousins?|nephews?|nieces?|(?:mother|father|sister|brother)-in-law|boss|"
    r"manager|"
    r"flatmate|roommate|neighbou?r|landlord|landlady|doctor|dentist|therapist|lawyer|accountant|"
    r"teacher|coach|best friend|ex|dogs?|cats?|supervisor|colleague|assistant)"
)
_TRADE = (
    r"(?:[a-z]+(?:ist|eer|ologist|ician|wright)|teacher|nurse|doctor|lawyer|student|designer|"
    r"developer|programmer|manager|writer|painter|baker|chef|cook|driver|farmer|builder|"
    r"carpenter|plumber|translator|editor|researcher|lecturer|professor|architect|pilot|"
    r"consultant|accountant|freelancer|photographer|firefighter|police officer|librarian|"
    r"midwife|vet|analyst|trainer|gardener|vegetarian|vegan|diabetic|twin|only child|widow(?:er)?|"
    r"single (?:mum|mom|dad|parent|mother|father)|night owl|early bird|left-hander)"
)

FACTS = (
    pattern(
        "fact",
        "my name is",
        "name",
        r"\b[Mm]y (?:full |last |first |maiden )?name(?: is|['’]s) [A-Z]\w+",
        0.95,
        0.7,
    ),
    pattern(
        "important_fact",
        "allergic",
        "allergic intolerant",
        r"\b(?:I(?:['’]m| am)|(?:[Mm]y|[Oo]ur) "
        + _FAMILY
        + rf"(?:,? {NAME},?)? (?:is|are)|{NAME} is) "
        r"(?:also |severely |very |deadly |highly )?(?:allergic to|intolerant (?:to|of))\b",
        0.95,
        0.85,
    ),
    pattern(
        "fact",
        "I am",
        "m am",
        r"\bI(?:['’]m| am) (?:also |now |a |an )*(?:(?:strict |lifelong )?(?:vegetarian|vegan|"
        r"diabetic|"
        r"coeliac|celiac|lactose intolerant|gluten[- ]free|left-handed|colou?r[- ]blind|pregnant|"
        r"married|divorced|widowed|retired|engaged)\b(?! to (?:my|the) (?:phone|job|work))|"
        r"originally from [A-Z]|from [A-Z]\w+|based in [A-Z]|"
        r"\d\d years old)|"
        rf"\bI(?:['’]m| am) (?:also |now )?an? (?:[a-z-]+ )?{_TRADE}\b(?! of (?:a|an|the|mind))|"
        r"\bI(?:['’]m| am) on (?:parental|maternity|paternity|sick|study) leave\b",
        0.85,
        0.6,
    ),
    pattern(
        "fact",
        "I live, I work",
        "live lives lived work worked grew born moved study studied graduated raised majored own",
        r"\bI(?: currently| now| used to| also| still)* (?:live[ds]? (?:in|at|on|with)|"
        r"work(?:ed)? (?:as|at|for|from home|in (?:the )?\w+)|grew up in|was born (?:in|on)|"
        r"moved (?:to|from) [A-Z]|stud(?:y|ied) [\w ]{2,30} (?:at|in)|graduated from|was raised in|"
        r"majored in|own (?:a|an|two|three) )",
        0.8,
        0.6,
    ),
    pattern(
        "fact",
        "I have",
        "have",
        r"\b(?:I|[Ww]e) have (?:a|an|one|two|three|four|five|\d) (?:[\w-]+ ){0,3}?"
        r"(?:sons?|daughters?|children|kids?|sisters?|brothers?|siblings|dogs?|cats?|guest room|"
        r"cousins?|grandchildren|twins)\b(?! (?:too|as well))",
        0.8,
        0.55,
    ),
    pattern(
        "fact",
        "I started",
        "started got promoted hired diagnosed accepted",
        r"\bI(?:['’]ve| have)?(?: just| recently| finally)* (?:started (?:a new job|working|my "
        r"new job)|"
        r"got (?:a (?:new )?job|promoted|engaged|married|divorced|hired|laid off)|(?:was|been) "
        r"(?:promoted|hired|diagnosed|accepted) )",
        0.8,
        0.6,
    ),
    pattern(
        "fact",
        "my relation",
        "my our",
        rf"\b(?:[Mm]y|[Oo]ur) (?:(?:older|younger|elder|little|big|twin|late|new|eldest|"
        rf"youngest) )?{_FAMILY}"
        rf"(?:,? {NAME},?)? (?:(?:is|are) (?:called|named|[A-Z]\w+|an? (?:\w+ ){{0,2}}{_TRADE}|"
        r"(?:diabetic|vegetarian|vegan|pregnant|deaf|blind|retired|coeliac|celiac)\b|from [A-Z]|"
        r"(?:\d+|six|seven|eight|nine|ten|two|three|four|five|one) (?:years?|months?) old|\d+\b)|"
        r"(?:lives?|works?|runs?|owns?|teaches|studies|was born|died|grew up|moved to [A-Z]|"
        r"plays the|speaks|comes from|uses a \w+|has (?:a key|a|an|two|three) )\b)",
        0.85,
        0.6,
    ),
    pattern(
        "fact",
        "name is",
        "name called named",
        rf"\b(?:[Tt]he|[Mm]y|[Oo]ur|[Hh]is|{NAME}['’]s) [\w' -]{{2,40}}?(?:['’]s)? name is "
        rf"(?:[A-Z]\w+)|"
        rf"^(?:The|My|Our) [\w' -]{{2,40}} (?:is|are) (?:called|named) {NAME}",
        0.85,
        0.6,
    ),
    pattern(
        "fact",
        "birthday",
        "birthday anniversary due wedding",
        rf"\b(?:[Mm]y|[Oo]ur|{NAME}['’]s) (?:\w+['’]s )?(?:birthday|anniversary|due date|wedding)"
        rf"(?: is|['’]s)(?: on| in)? .*?(?:\d|{MONTH}\b|{WHEN})",
        0.85,
        0.65,
    ),
    pattern(
        "fact",
        "someone's relation",
        "is was",
        rf"^{NAME} (?:is|was) (?:my|our|{NAME}['’]s) (?:new |old |former |ex-|older |younger )?"
        rf"(?:{_FAMILY}|supervisor|assistant|tutor|contact|plumber|electrician|client|"
        rf"customer)\b",
        0.85,
        0.6,
    ),
    pattern(
        "fact",
        "their name is",
        "doctor dentist teacher wife husband boss lawyer gp",
        rf"^(?:[Hh]er|[Hh]is|[Tt]heir) (?:doctor|dentist|teacher|wife|husband|boss|lawyer|GP) is "
        rf"{NAME}",
        0.7,
        0.5,
    ),
    pattern(
        "fact",
        "an amount",
        "rent salary budget price deposit fee cost invoice loan mortgage repair offer",
        r"\b(?:[Tt]he|[Oo]ur|[Mm]y|[Tt]otal|[Mm]onthly|^) ?(?:\w+ )?(?:[Rr]ent|[Ss]alary|"
        r"[Bb]udget|[Pp]rice|"
        r"[Dd]eposit|[Ff]ee|[Cc]ost|[Ii]nvoice|[Ll]oan|[Mm]ortgage|[Rr]epair|[Oo]ffer)\b(?: "
        r"\w+){0,4}? "
        r"(?:is|are|was|were|costs?|comes to|amounts to|will be|rose to|fell to) "
        r"(?:\w+ ){0,3}?[$€£¥]?\d",
        0.8,
        0.55,
    ),
    pattern(
        "fact",
        "it costs",
        "cost costs quoted",
        r"^(?:The|Our|My|A|An) [\w' -]{3,50} (?:costs?|was quoted at|cost us) (?:\w+ "
        r"){0,2}?[$€£¥]?\d",
        0.75,
        0.5,
    ),
    pattern(
        "important_fact",
        "deadline",
        "deadline",
        r"\b(?:[Tt]he |[Oo]ur |[Mm]y )?(?:[\w-]+ ){0,3}[Dd]eadline (?:for [\w' ]{2,50} )?"
        rf"(?:is|was moved to|has moved to|remains|has been (?:moved|extended) to) (?:.*?)(?:\d|"
        rf"{WHEN})",
        0.9,
        0.8,
    ),
    pattern(
        "fact",
        "on a date",
        "end ends start starts begin begins expire expires open opens close closes takes due "
        "scheduled closed is",
        r"^(?:[Tt]he|[Oo]ur|[Mm]y|[Mm]um|[Dd]ad|"
        + NAME
        + r"['’]s)\b(?! [\w' ]*\b(?:that|which|who)\b)[\w' -]{2,60}? "
        r"(?:ends?|starts?|begins?|expires?|opens?|closes?|takes place|is due|are due|is scheduled|"
        r"is closed|are closed|is) (?:on|at|in|from|by|for|until) (?:.*?)"
        rf"(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH}|{MONTH} \d|\b{DAY}s?\b|\b(?:19|"
        rf"20)\d\d\b)",
        0.75,
        0.55,
    ),
    pattern(
        "fact",
        "a new address",
        "address number email mail plate iban flight seat room",
        r"\b(?:[Mm]y|[Oo]ur|[Tt]he)(?: new| delivery| postal| home| office| billing)* (?:address|"
        r"phone number|"
        r"number|e-?mail(?: address)?|licen[cs]e plate|account number|IBAN|flight|seat|room)"
        r"(?: has changed:? ?(?:it is)?| is now| is|:) .*(?:\d|@)",
        0.85,
        0.6,
    ),
    pattern(
        "fact",
        "a value",
        "due budget deadline address phone birthday birth blood account iban colour color size "
        "flight booking check departure arrival plate rent salary deposit number",
        r"^(?:Due date|Budget|Deadline|Address|Phone|Birthday|Date of birth|Blood type|Account|"
        r"IBAN|"
        r"Wall colou?r|Colou?r|Shoe size|Size|Flight|Booking(?: number| reference)?|Check-?in|"
        r"Departure|Arrival|Licen[cs]e plate|Rent|Salary|Deposit|Customer number|Contract number)"
        r"(?: is|:) .*(?:\d|[+-]|positive|negative)",
        0.8,
        0.6,
    ),
)


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


_IGNORE_CASE = re.IGNORECASE

QUESTION = re.compile(
    r"(?:\?[\"'”’)\s]*(?:[^\w\s]+\s*)*$)|^(?:and |but |so |well,? |oh,? |hey,? |ok,? )*"
    r"(?:who|what|when|where|why|how|which|do|does|did|is|are|am|was|were|can|could|would|will|"
    r"should|shall|have|has|had|may|might)(?:n['’]t)? (?:i|you|we|they|he|she|it|the|my|your|our|"
    r"there|this|that|anyone|anybody|someone|about|many|much|long|would|is|are|do|did)\b(?!,)",
    _IGNORE_CASE,
)
HYPOTHETICAL = re.compile(
    r"\b(?:if (?:i|we|you|he|she|they|it|the|only|not|there|my|your|someone|nothing|anyone)\b|"
    r"maybe|"
    r"perhaps|might|wish|imagine|suppos(?:e|ing)|pretend|hypothetically|in theory|what if|"
    r"would have|could have|should have|unless|whether|could|probably|wonder(?:ed|ing)?|"
    r"not sure|i think i|i guess|hopefully|thinking (?:of|about)|considering|as if|like if)\b|"
    r"\bi think\W*$",
    _IGNORE_CASE,
)
WOULD = re.compile(r"\b(?:would|['’]d)(?: \w+)? (?!prefer\b|rather\b)\w+", _IGNORE_CASE)
NEGATED = re.compile(
    r"\b(?:have|has|had|did|do|does|could|can|was|were)(?:n['’]t| not)(?: \w+)? (?:yet )?"
    r"(?:decided?|agreed?|chosen?|choose|plan(?:ned)?|resolved?|settled?)\b|"
    r"\b(?:never|nobody|no one|not yet) (?:decided|agreed|chose|planned)\b|\bundecided\b|"
    r"\bno decision\b",
    _IGNORE_CASE,
)
ABOUT_SOMEONE_UNNAMED = re.compile(
    r"^(?:(?:and|but|so|because|since|then|also|oh|well|ok|okay|yeah|yes|no|lol|haha),? )*"
    r"(?:he|she|it|they|this|that|these|those|there|its|his|her|their|which|who|one|some|others?)"
    r"(?:['’]\w+)?\b",
    _IGNORE_CASE,
)
QUOTED = re.compile(r"^[\"“‘'«„>]|^\w+ (?:said|says|asked|told \w+)\b")
BOILERPLATE = re.compile(
    r"\b(?:confidential|intended (?:only|solely)|all rights reserved|copyright|warrant(?:y|ies)|"
    r"licen[cs]e[ds]?|redistribut\w+|unsubscribe|privacy policy|terms of (?:use|service)|cookies?|"
    r"hesitate|neither confirm|click here|sent from my|without notice|liable|liability|"
    r"(?:we|i) recommend|as an ai|look(?:ing)? forward|best (?:regards|wishes)|is provided|"
    r"backwards?[- ]compatib\w+|deprecat\w+|see also|for more (?:details|information))\b",
    _IGNORE_CASE,
)
ADVICE = re.compile(
    r"\b(?:you (?:should|can|could|may|must|need|have to|might|will|want)|make sure|ensure|"
    r"in order to|^here(?:['’]?s| is| are)\b|^(?:look|check)\b|please (?:see|refer|use|contact|"
    r"read|check|make|consider|report|send|file))\b",
    _IGNORE_CASE,
)
TECHNICAL = re.compile(
    r"`|\b\w+\(\)|\b\w+::\w+|\b[a-z]+_[a-z_]+\b|(?<![\w.])/(?:etc|usr|var|home|bin)/|--\w|\$\w|"
    r"\b(?:function|method|parameter|argument|module|compiler|kernel|API|bug|patch(?:es)?|commit|"
    r"configure|syntax|option)\b"
)

OBJECTIONS = (QUESTION, HYPOTHETICAL, WOULD, NEGATED, BOILERPLATE, ADVICE, TECHNICAL)
"""Found anywhere in a sentence, each of them is enough."""
