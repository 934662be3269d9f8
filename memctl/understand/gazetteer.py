"""Small lists that tell names apart: given names, places, what organisations are called.

They decide only in doubt, such as whether the first word of a sentence is a name.
"""

from __future__ import annotations

from memctl.understand.stopwords import words

GIVEN_NAMES = words(
    """Aaron Abdul Abigail Adam Adrian Ahmed Aisha Akira Alan Albert Alejandro Alessandro Alex
    Alexander Alexandra Ali Alice Alicia Alison Allison Amanda Amelia Amir Amy Ana Anders
    Andrea Andreas Andrew Andy Angela Anika Anita Ann Anna Anne Anthony Antonio Arjun Arthur
    Astrid Aya Barbara Beatrice Ben Benjamin Bernard Beth Betty Bill Björn Bob Bradley Brandon
    Brenda Brian Bruce Bruno Camille Carl Carla Carlos Carmen Carol Caroline Catherine Charles
    Charlie Charlotte Chen Chiara Chloe Chris Christian Christina Christine Christopher Claire
    Clara Claudia Colin Connor Craig Cynthia Dan Daniel Daniela Danielle David Deborah Denise
    Dennis Derek Diana Diego Dmitri Dominic Donald Donna Dorothy Doug Douglas Dylan Edward
    Eileen Elena Eli Elias Elijah Elin Elizabeth Ella Ellen Emil Emily Emma Eric Erik Erika
    Ethan Eva Evelyn Fatima Felix Fernando Fiona Florian Francesca Francesco Francis Frank
    Franz Fred Gabriel Gareth Gary George Gerald Giovanni Giulia Gloria Gordon Greg Gregory
    Gustav Hannah Hans Harold Harriet Harry Hassan Heather Heidi Helen Helena Henrik Henry
    Hiroshi Holly Howard Hugo Ian Ibrahim Ines Ingrid Irene Isaac Isabel Isabella Isabelle Ivan
    Jack Jacob Jacqueline Jakob James Jamie Jan Jane Janet Janice Jason Javier Jean Jeff
    Jeffrey Jennifer Jenny Jeremy Jerry Jesse Jessica Jill Jim Joan Joanna Joe Joel Johan
    Johannes John Johnny Jon Jonas Jonathan Jordan Jorge Jose José Josef Joseph Joshua Juan
    Judith Judy Julia Julian Julie Jürgen Karen Karim Karin Karl Karla Kate Katherine Kathleen
    Kathryn Katja Kayla Keith Kelly Ken Kenji Kenneth Kevin Khalid Kim Klaus Kristin Kumar Kyle
    Lars Laura Lauren Laurent Leila Lena Leo Leon Leonard Leonie Liam Lily Linda Lisa Lorenzo
    Louis Louise Luca Lucas Lucia Lucy Luis Luke Lukas Lydia Magnus Manuel Marc Marcel Marco
    Marcus Margaret Maria Marie Marina Mario Marion Mark Markus Marta Martha Martin Martina
    Mary Mateo Matt Matteo Matthew Maya Megan Mehmet Mei Melissa Michael Michelle Miguel Mike
    Mila Miriam Mohamed Mohammed Monica Monika Muhammad Nadia Nancy Naomi Natalia Natalie
    Nathan Neil Nicholas Nick Nicola Nicolas Nicole Nils Nina Noah Noemi Nora Olaf Oliver
    Olivia Olga Omar Oscar Oskar Pablo Pamela Patricia Patrick Paul Paula Pavel Pedro Penelope
    Peter Petra Philip Philipp Phillip Pierre Priya Rachel Rafael Raj Ralph Ravi Raymond
    Rebecca Ricardo Richard Rita Robert Roberto Robin Roger Roland Ronald Rosa Rosalind
    Rosemary Roy Russell Ruth Ryan Sam Samantha Samir Samuel Sandra Sara Sarah Scott Sean
    Sebastian Sergei Sergio Sharon Sheila Shirley Silvia Simon Simone Sofia Sofie Sophia Sophie
    Stefan Stefanie Stella Stephanie Stephen Steve Steven Stuart Susan Susanne Sven Sylvia
    Takashi Tanja Tara Ted Teresa Theo Theodore Theresa Thomas Tim Timothy Tina Tobias Todd Tom
    Tony Tracy Ulrich Ursula Valentina Vanessa Vera Veronica Victor Victoria Viktor Vincent
    Virginia Vivian Walter Wanda Wei Wendy William Wolfgang Xavier Yasmin Yuki Yuri Yusuf
    Yvonne Zachary Zoe"""
)

PLACES = words(
    """Afghanistan Africa Albania Algeria America Amsterdam Ankara Argentina Armenia Asia Athens
    Atlanta Auckland Australia Austria Azerbaijan Baghdad Bangkok Bangladesh Barcelona Basel
    Beijing Beirut Belarus Belfast Belgium Belgrade Bergen Berlin Bern Birmingham Bogotá
    Bolivia Bologna Bordeaux Boston Brazil Bremen Brighton Brisbane Bristol Britain Brooklyn
    Brussels Bucharest Budapest Bulgaria Cairo Calgary California Cambodia Cambridge Cameroon
    Canada Cardiff Chicago Chile China Cologne Colombia Colorado Copenhagen Croatia Cuba Cyprus
    Dakar Dallas Delhi Denmark Denver Detroit Dortmund Dresden Dubai Dublin Düsseldorf Ecuador
    Edinburgh Egypt England Estonia Ethiopia Europe Finland Florence Florida France Frankfurt
    Geneva Genoa Germany Ghana Ghent Glasgow Gothenburg Greece Hamburg Hanoi Hanover Havana
    Hawaii Heidelberg Helsinki Hiroshima Houston Hungary Iceland India Indonesia Innsbruck Iran
    Iraq Ireland Israel Istanbul Italy Jakarta Jamaica Japan Jerusalem Johannesburg Kenya Kiel
    Kolkata Korea Kraków Kuwait Kyiv Kyoto Lagos Laos Latvia Lausanne Lebanon Leeds Leicester
    Leipzig Libya Lima Lisbon Lithuania Liverpool Ljubljana London Luxembourg Lyon Madrid
    Malaysia Malta Manchester Manhattan Manila Marseille Melbourne Mexico Miami Milan Milano
    Minneapolis Minsk Montreal Morocco Moscow Mumbai Munich München Myanmar Nagoya Nairobi
    Naples Nepal Netherlands Nigeria Norway Nottingham Nuremberg Oakland Ohio Oregon Osaka Oslo
    Ottawa Oxford Pakistan Palermo Palestine Panama Paris Peru Philadelphia Philippines Phoenix
    Pisa Pittsburgh Poland Porto Portugal Prague Pune Quebec Reykjavik Riga Rome Rotterdam
    Russia Salzburg Scotland Seattle Senegal Seoul Serbia Seville Shanghai Sheffield Shenzhen
    Siberia Sicily Singapore Slovakia Slovenia Sofia Spain Stockholm Strasbourg Stuttgart Sudan
    Sweden Switzerland Sydney Syria Taipei Taiwan Tallinn Tanzania Tehran Texas Thailand Tokyo
    Toronto Toulouse Tunis Tunisia Turin Turkey Uganda Ukraine Utrecht Uruguay Valencia
    Vancouver Venezuela Venice Vienna Vietnam Vilnius Wales Warsaw Washington Wien Wrocław
    Yokohama Alabama Alaska Arizona Arkansas Connecticut Delaware Idaho Illinois Indiana Iowa
    Kansas Kentucky Louisiana Maine Maryland Massachusetts Michigan Minnesota Mississippi
    Missouri Montana Nebraska Nevada Oklahoma Pennsylvania Tennessee Utah Vermont Wisconsin
    Wyoming Hollywood Queensland Provence Santorini Orlando Bavaria Tuscany Zagreb Zurich
    Zürich"""
)

TITLES = words(
    """Mr Mrs Ms Miss Mx Dr Prof Professor Sir Dame Lord Lady Captain Capt Colonel Col General Gen
    Sergeant Sgt Reverend Rev Father Sister Brother Judge Senator Sen Governor Gov Mayor Aunt
    Auntie Uncle Herr Frau Señor Señora Monsieur Madame Mme Doctor King Queen Prince Princess
    Pope Saint"""
)
"""Words before a name that make it a person's; some of them are words of their own as well."""

BARE_TITLES = words("Mr Mrs Ms Mx Dr Prof Capt Col Gen Sgt Rev Sen Gov Mme Sir Herr Frau")

ORGANISATION_ENDS = words(
    """Inc Ltd LLC GmbH AG SE Corp Corporation Co Company PLC Group Holdings Bank University
    College Institute School Academy Hospital Clinic Infirmary Council Committee Commission
    Ministry Department Agency Association Foundation Society Union Federation Club Party
    Church Museum Library Theatre Theater Orchestra Laboratory Laboratories Labs Studios
    Records Press Airlines Airways Railways Brewery Restaurant Hotel Café Cafe Bakery Pharmacy
    Surgery Insurance Partners Consulting Solutions Systems Technologies Software Services
    Industries Motors Team Court Office Bureau Authority Alliance Trust Fund Parliament Senate
    Congress Army Navy"""
)

PLACE_ENDS = words(
    """Street St Road Rd Avenue Ave Lane Square Boulevard Drive Way Close Court Crescent Terrace
    River Lake Mountain Mountains Hill Hills Valley Island Islands Bay Beach Coast Sea Ocean
    Gulf Park Forest Bridge Station Airport City Town Village County District Province State
    Republic Kingdom Peninsula Desert Falls Creek Castle Palace Cathedral Harbour Harbor Port
    Canyon"""
)

PLACE_STARTS = words(
    "Mount Lake Port Fort Cape North South East West New San Santa Saint Los Las El"
)

PLACES_OF_SEVERAL_WORDS = frozenset(
    (
        "United States", "United Kingdom", "Hong Kong", "New York", "New York City", "New Zealand",
        "Costa Rica", "Puerto Rico", "Sri Lanka", "South Korea", "North Korea", "Saudi Arabia",
        "South Africa", "Czech Republic", "Papua New Guinea", "Middle East", "Cinque Terre",
        "Ivory Coast", "El Salvador", "Dominican Republic", "Latin America",
        "United Arab Emirates", "Rio de Janeiro", "Buenos Aires", "Tel Aviv", "Kuala Lumpur",
        "USA", "US", "UK", "EU",
    )
)  # fmt: skip

NOT_ALONE = words(
    """new happy good great nice south north east west central upper lower old big little inc ltd
    co corp llc gmbh president king queen prince princess director chairman minister tv bbq ep
    cd dvd pc vip diy id fps cv pdf usb html url api faq gps led ceo cto season episode level
    chapter part day week month top age grade room size number article question version like
    totally about over under around only just almost maybe"""
)
"""Words that name nothing when they stand alone, or with a number after them."""

NOT_ENTITIES = words(
    """january february march april may june july august september october november december jan
    feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday
    saturday sunday mon tue tues wed thu thur thurs fri sat sun ok okay yes no yeah yep nope hi
    hey hello bye thanks thank please sorry wow oh ah aw aww lol omg lmao rofl btw fyi imo imho
    asap tbh idk ps nb todo tba tbd eta faq am pm ad bc etc birthday merry christmas easter
    year halloween morning evening night afternoon english german french spanish italian
    portuguese dutch swedish danish norwegian finnish polish czech russian ukrainian greek
    turkish hungarian romanian chinese japanese korean arabic hebrew hindi latin american
    british european african asian indian canadian australian mexican irish scottish welsh mr
    mrs ms dr sir madam mum mom mama dad papa grandma grandpa gran mother father god internet
    i'm i'll i've i'd note table figure chapter section page part step appendix subject dear
    regards sincerely cheers sent re fw fwd total summary introduction conclusion abstract
    references contents index title yesterday today tomorrow tonight important reminder
    remember decision action warning caution true false none null yay haha hahaha congrats
    congratulations welcome absolutely definitely sounds looking also let's that's it's ill ive
    im dont cant thats lets youre youll theyre its wont didnt isnt doesnt wasnt there's here's
    what's you're we're they're don't can't won't isn't doesn't didn't haven't""",
)
"""Words that are written with a capital, or stand alone so often, without naming anything."""
