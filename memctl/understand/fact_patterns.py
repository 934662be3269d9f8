"""The sentence patterns of facts and observations."""

from __future__ import annotations

from memctl.understand.pattern import DAY, MONTH, NAME, WHEN, pattern

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

_RELATIVE = (
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
        + _RELATIVE
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
        rf"youngest) )?{_RELATIVE}"
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
        rf"(?:{_RELATIVE}|supervisor|assistant|tutor|contact|plumber|electrician|client|"
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
