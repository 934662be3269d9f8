"""What speaks against remembering a sentence, whatever else it says."""

from __future__ import annotations

import re

_I = re.IGNORECASE

QUESTION = re.compile(
    r"(?:\?[\"'”’)\s]*(?:[^\w\s]+\s*)*$)|^(?:and |but |so |well,? |oh,? |hey,? |ok,? )*"
    r"(?:who|what|when|where|why|how|which|do|does|did|is|are|am|was|were|can|could|would|will|"
    r"should|shall|have|has|had|may|might)(?:n['’]t)? (?:i|you|we|they|he|she|it|the|my|your|our|"
    r"there|this|that|anyone|anybody|someone|about|many|much|long|would|is|are|do|did)\b(?!,)",
    _I,
)
HYPOTHETICAL = re.compile(
    r"\b(?:if (?:i|we|you|he|she|they|it|the|only|not|there|my|your|someone|nothing|anyone)\b|"
    r"maybe|"
    r"perhaps|might|wish|imagine|suppos(?:e|ing)|pretend|hypothetically|in theory|what if|"
    r"would have|could have|should have|unless|whether|could|probably|wonder(?:ed|ing)?|"
    r"not sure|i think i|i guess|hopefully|thinking (?:of|about)|considering|as if|like if)\b|"
    r"\bi think\W*$",
    _I,
)
WOULD = re.compile(r"\b(?:would|['’]d)(?: \w+)? (?!prefer\b|rather\b)\w+", _I)
NEGATED = re.compile(
    r"\b(?:have|has|had|did|do|does|could|can|was|were)(?:n['’]t| not)(?: \w+)? (?:yet )?"
    r"(?:decided?|agreed?|chosen?|choose|plan(?:ned)?|resolved?|settled?)\b|"
    r"\b(?:never|nobody|no one|not yet) (?:decided|agreed|chose|planned)\b|\bundecided\b|"
    r"\bno decision\b",
    _I,
)
ABOUT_SOMEONE_UNNAMED = re.compile(
    r"^(?:(?:and|but|so|because|since|then|also|oh|well|ok|okay|yeah|yes|no|lol|haha),? )*"
    r"(?:he|she|it|they|this|that|these|those|there|its|his|her|their|which|who|one|some|others?)"
    r"(?:['’]\w+)?\b",
    _I,
)
QUOTED = re.compile(r"^[\"“‘'«„>]|^\w+ (?:said|says|asked|told \w+)\b")
BOILERPLATE = re.compile(
    r"\b(?:confidential|intended (?:only|solely)|all rights reserved|copyright|warrant(?:y|ies)|"
    r"licen[cs]e[ds]?|redistribut\w+|unsubscribe|privacy policy|terms of (?:use|service)|cookies?|"
    r"hesitate|neither confirm|click here|sent from my|without notice|liable|liability|"
    r"(?:we|i) recommend|as an ai|look(?:ing)? forward|best (?:regards|wishes)|is provided|"
    r"backwards?[- ]compatib\w+|deprecat\w+|see also|for more (?:details|information))\b",
    _I,
)
ADVICE = re.compile(
    r"\b(?:you (?:should|can|could|may|must|need|have to|might|will|want)|make sure|ensure|"
    r"in order to|^here(?:['’]?s| is| are)\b|^(?:look|check)\b|please (?:see|refer|use|contact|"
    r"read|check|make|consider|report|send|file))\b",
    _I,
)
TECHNICAL = re.compile(
    r"`|\b\w+\(\)|\b\w+::\w+|\b[a-z]+_[a-z_]+\b|(?<![\w.])/(?:etc|usr|var|home|bin)/|--\w|\$\w|"
    r"\b(?:function|method|parameter|argument|module|compiler|kernel|API|bug|patch(?:es)?|commit|"
    r"configure|syntax|option)\b"
)

OBJECTIONS = (QUESTION, HYPOTHETICAL, WOULD, NEGATED, BOILERPLATE, ADVICE, TECHNICAL)
"""Found anywhere in a sentence, each of them is enough."""
