"""Messages to an assistant that need no memory, for ``context.py``.

``PLAIN`` was in view while ``--auto`` was built.  ``BLIND`` was written later, and nothing was
tuned on it; whoever does so writes another.
"""

from __future__ import annotations

PLAIN = (
    "thanks, that works", "ok great", "hello there", "hi, how are you?", "yes please", "continue",
    "no, leave it as it is", "can you say that in fewer words?", "write a haiku about autumn",
    "write a python function that reverses a string", "run it again", "tell me a joke",
    "fix this bug: TypeError: 'NoneType' object is not subscriptable", "give me an example",
    'translate "good morning" into Spanish', "explain recursion like I'm five",
    "how do I sort a list in Python?", "what's 17% of 340?", "convert 5 miles to kilometers",
    "make the second paragraph shorter", "add a unit test for that", "rename the variable to total",
    "summarise the following text in two sentences", "give me ten names for a coffee shop",
    "what does HTTP 503 mean?", "how many days are there in a leap year?", "let's move on",
    "draft a polite email declining an invitation", "refactor this class to use composition",
    "what's the difference between TCP and UDP?", "is it going to rain tomorrow?",
    "write a SQL query that counts orders by customer", "how do I center a div?",
    "what is a good recipe for pancakes?", "check the spelling of this sentence",
    "why is the sky blue?", "use tabs instead of spaces", "that's wrong, try again",
    "please format this as a table", "generate a random password", "what time is it in Tokyo?",
    "how do I undo the last git commit?", "can you make it more formal?",
    "what are the symptoms of a cold?", "write a short story about a dragon",
    "create a workout plan for beginners", "what is machine learning?", "sounds good, go ahead",
    "open the file and read it", "what should I cook tonight?", "how does photosynthesis work?",
    "rewrite this in the passive voice", "compare Python and Go", "what's new in Python 3.13?",
)  # fmt: skip

BLIND = {
    "small talk": (
        "good night, see you tomorrow", "haha, that's funny", "wow, nice one", "no worries",
        "I'm back", "one moment please", "that is exactly what I wanted", "you're the best",
        "hmm, not sure about that", "how was your weekend?", "are you still there?", "cool",
        "what's your name?", "who made you?", "do you like music?", "I'm bored", "sorry, typo",
        "never mind", "perfect, next one", "I had a long day", "happy new year!", "brb",
        "guten Morgen, wie geht's?", "alles klar, danke dir", "salut, ça va ?", "merci beaucoup",
        "hola, ¿qué tal?", "vale, perfecto", "ciao, come stai?", "grazie mille", "olá, tudo bem?",
        "goedemorgen", "ありがとう", "你好",
    ),
    "code": (
        "why does this loop never terminate?", "turn this into a list comprehension",
        "what is the time complexity of quicksort?", "how can I make this query faster?",
        "port this script to TypeScript", "give me a regex for email addresses",
        "I get a segmentation fault on line 12", "show me how to mock a function in pytest",
        "what does the walrus operator do?", "put the constants at the top of the module",
        "document the parameters of this function", "Dockerfile for a FastAPI app please",
        "which HTTP status code fits a duplicate entry?", "the tests are still failing",
        "bump the version and tag a release", "lint the project",
        "schreibe eine Funktion, die zwei Listen mischt", "corrige ce bug s'il te plaît",
        "añade pruebas para este método", "scrivi un test per questa classe",
    ),
    "instructions": (
        "shorten this to 100 words", "turn these bullet points into prose", "pick a better title",
        "act as a job interviewer", "what rhymes with orange?", "plan a three-day trip to Rome",
        "play a game of twenty questions with me", "answer in one sentence only",
        "what is the capital of Australia?", "how far away is the moon?", "who wrote Faust?",
        "name five rivers in Africa", "is a tomato a fruit?", "spell necessary",
        "how many grams are in an ounce?", "what should I wear to a wedding?",
        "how do you say thank you in Japanese?", "make it sound friendlier",
        "fasse den folgenden Text zusammen", "résume ce texte en trois phrases",
        "traduce esta frase al inglés", "riassumi questo testo", "vertaal dit naar het Engels",
    ),
}  # fmt: skip
