"""Words that carry grammar rather than meaning, by ISO 639-1 language code.

Keyword search drops them, phrase finding splits at them, and language detection counts them.
Only words that are common in running text stand here, in lower case, with their accents.
"""

from __future__ import annotations

from functools import cache

_LISTS: dict[str, str] = {
    "en": """a about above after again against all also am an and any are aren't as at be because
        been before being below between both but by can can't cannot could couldn't did didn't do
        does doesn't doing don't down during each etc few for from further had hadn't has hasn't
        have haven't having he her here hers herself him himself his how i if in into is isn't it
        its itself just let's me more most mustn't my myself no nor not of off on once only or
        other ought our ours ourselves out over own same shan't she should shouldn't so some such
        than that the their theirs them themselves then there these they this those through to too
        under until up upon us very was wasn't we were weren't what when where which while who
        whom whose why will with won't would wouldn't you your yours yourself yourselves""",
    "de": """aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim
        bin bis bist da damit dann das dass daß dein deine dem den denn der des dich die dies
        diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines
        er es euch euer für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn
        ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jener jetzt
        kann kein keine keinen keiner können könnte machen man mein meine meinem meinen meiner
        mich mir mit muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem
        seinen seiner seit sich sie sind so solche soll sollte sondern über um und uns unser
        unsere unter viel vom von vor war waren warum was weg weil welche wenn wer werde werden
        wie wieder will wir wird wirst wo wollen wollte würde würden zu zum zur zwar zwischen""",
    "fr": """à afin ai aie ainsi alors après as au aucun aura aussi autre autres aux avait avec
        avez avoir avons ayant bien c' ça car ce ceci cela celle celles celui ces cet cette ceux
        chaque chez comme comment d' dans de depuis des deux donc dont du elle elles en encore
        entre es est et étaient était étant été être eu eux fait faire fois font ici il ils j' je
        l' la le les leur leurs lui ma mais me même mes moi mon n' ne ni nos notre nous on ont ou
        où par parce pas peu peut plus pour pourquoi qu' qu'il quand que quel quelle quelles quels
        qui sa sans se sera ses si son sont sous suis sur ta te tes toi ton tous tout toute toutes
        très tu un une vos votre vous y""",
    "es": """a al algo algunas algunos ante antes aquí así aún aunque bajo bien cada como cómo con
        contra cual cuál cuando cuándo de del desde después donde dónde dos durante e él el ella
        ellas ellos en entre era eran eres es esa esas ese eso esos esta está están estas este
        esto estos estoy fue fueron fui ha había haber hace hacer hacia han hasta hay he la las le
        les lo los más me mi mis mientras mismo muy nada ni no nos nosotros nuestra nuestro o otra
        otras otro otros para pero poco por porque pues que qué quien quién se sea ser será si sí
        sido sin sobre sois solo son soy su sus también tampoco tan tanto te tener tengo ti tiene
        tienen todo todos tu tú tus un una unas uno unos usted ustedes y ya yo""",
    "it": """a abbiamo ad agli ai al alcuni alla alle allo anche ancora avere aveva c'è che chi ci
        cioè come con contro così cui da dagli dai dal dalla dalle dallo degli dei del della delle
        dello dentro di dopo dove due e è ed era erano essere fa fare fra fu già gli ha hai hanno
        ho i il in io la le lei li lo loro lui ma me mentre mi mia mie miei mio molto ne nei nel
        nella nelle nello noi non nostra nostro o ogni ora per perché però più po' poco poi prima
        qual quale quando quanto quella quelle quelli quello questa queste questi questo qui se
        sei sempre senza si sia siamo siete solo sono sopra sta stata stato sto su sua sue sugli
        sui sul sulla sulle suo suoi te ti tra tu tua tuo tutti tutto un un' una uno vi voi""",
    "pt": """a à ainda além algum alguma alguns ante antes ao aos apenas após aquela aquele
        aqueles aquilo as às assim até cada com como contra da das de dela dele deles depois desde
        dessa desse desta deste do dois dos e é ela elas ele eles em entre era eram essa essas
        esse esses esta está estão estas estava este estes eu foi foram há isso isto já lá lhe
        mais mas me mesmo meu meus minha minhas muito na nada não nas nem nessa nesse nesta neste
        no nos nós nossa nosso num numa o os ou outra outras outro outros para pela pelas pelo
        pelos pode por porque pouco qual quando que quem são se seja sem ser será seu seus si sim
        só sobre sou sua suas também te tem têm tenho ter tinha toda todas todo todos tu tua tudo
        um uma umas uns você vocês vos""",
    "nl": """aan al alle alles als altijd andere ben bij daar dan dat de der deze die dit doch
        doen door dus een eens en er ge geen geweest haar had heb hebben heeft hem het hier hij
        hoe hun iemand iets ik in is ja je jij jullie kan kon kunnen maar me meer men met mij mijn
        moet na naar niet niets nog nu of om omdat onder ons onze ook op over reeds te tegen toch
        toen tot u uit uw van veel voor want waren was wat we wel werd wezen wie wij wil worden
        wordt zal ze zei zelf zich zij zijn zo zonder zou""",
    "sv": """alla allt andra att av bara blev bli blir de dem den denna deras dess dessa det detta
        dig din dina ditt du där efter ej eller en er era ert ett från för ha hade han hans har
        henne hennes hon honom hur här i icke ingen inget inom inte jag kan kunde man med mellan
        men mig min mina mitt mot mycket ni nu när någon något några och om oss på samma sedan sig
        sin sina sitt ska skall skulle som så till upp ut utan vad var vara varför varit vars vem
        vi vid vilka vilken vill väl än är även över""",
    "da": """ad af aldrig alle alt anden andre at blev blive bliver da de dem den denne der deres
        det dette dig din dine disse dog du efter eller en end er et for fra få ham han hans har
        havde have hende hendes her hos hun hvad hvem hver hvis hvor hvordan hvorfor i ikke ind
        ingen intet jeg jer jo kan kom kunne man mange med meget mellem men mig min mine mit mod
        ned nej noget nogle nu når og også om op os over på sammen selv sig sin sine sit skal
        skulle som sådan thi til ud uden under var ved vi vil ville vor være været""",
    "no": """alle at av bare begge ble blei bli blir blitt da de deg dei deim deira dem den denne
        der dere deres det dette di din disse ditt du eg ein eit eller en enn er et etter for
        fordi fra få før ha hadde han hans har hennar henne hennes her hun hva hvem hver hvilke
        hvis hvor hvordan hvorfor i ikke ikkje inn ingen ja jeg kan kom korleis kunne kva man
        mange med meg meget mellom men mi min mitt mot mye må ned nei noe noen nå når og også om
        opp oss over på samme seg selv si sin sine sitt sjøl skal skulle slik som så til um under
        ut uten var ved vi vil ville vår være vært""",
    "fi": """ei eivät emme en enää eräs et että hän hänen he heidän heillä hyvin ihan itse ja jo
        joka joissa joita joka jonka jos jossa josta jota jotka kaikki kanssa keitä ketkä koska
        kuin kuinka kuka kun kyllä me meidän meillä mihin mikä miksi millä minkä minä minun missä
        mistä mitä mukaan mutta muut myös ne niiden niin niistä nyt ole olemme olen olet oli olisi
        olivat olla olleet on ovat se sekä sen siellä sillä sinä sitä siitä sitten tai te teidän
        tämä tämän tässä tästä tätä vaan vai vain vaikka vielä voi""",
    "pl": """a aby ale ani aż bardzo bez bo by był była było były być będzie będą chce choć ci co
        czy dla do gdy gdzie go i ich im inne iż ja jak jako jakie je jeden jednak jego jej jest
        jestem jeszcze jeśli już kiedy kto która które którego której który których którzy ku lub
        ma mają mam mi mnie moje może można my na nad nam nas nawet nic nich nie niej nim niż no o
        od on ona one oni oraz po pod poza przed przez przy sam są się swoje ta tak także tam te
        tego tej ten to tu ty tych tylko tym u w we wiele więc wszystko z za zawsze ze że""",
    "cs": """a aby ale ani ano asi až bez bude budou by byl byla byli bylo být co což či do jak
        jako je jeho jej její jejich jen ještě ji jich jim jiné již jsem jsi jsme jsou jste k kam
        kde kdo když která které který kteří ku má máte mé mezi mi mít mně mnou může my na nad nám
        naše ne nebo něco nej než nic není o od on ona oni ono pak po pod podle pokud pouze pro
        proč proto protože před při s se si své svůj ta tak také tam tato te tedy ten tento této
        tím to toho tohle tom tomu tu ty u už v vám vás ve více vše všechno vy z za ze že""",
    "ro": """a acea aceasta această acest acesta aceste acestea acolo ai aici al ale am ar are aș
        așa asta astfel atunci au avea avem ca că când care ce cea cei cel cele chiar cine cu cum
        da dacă dar de deci deja din dintre doar după e ea ei el ele era eram este eu fără fi fie
        fost iar îi îl îmi în încă între își îți la le lor lui mai mea mi mult nu o or ori pe
        pentru peste poate prin să sa sale sau său se și sunt sub tot toate toți tu un una unde
        unei unor unui vor voi""",
    "hu": """a abban ahhoz ahogy aki akik akkor alatt amely amelyek amelyet ami amit át az azért
        azok azon azonban azt azzal be csak de e ebben egy egyes egyéb egyik el ellen előtt én és
        ez ezek ezért ezt fel ha hanem hiszen hogy hogyan igen így ill is ison itt jó jól kell két
        ki le legyen lehet lenne lesz lett ma maga már más meg még mellett mert mi mint míg minden
        mindig mit most nagy nagyon ne nekem neki nem nincs ő ők olyan ott össze pedig persze s
        saját sem semmi sok számára szemben szerint szinte talán te tehát több tovább úgy új után
        vagy vagyok valami van vannak vele vissza viszont volna volt voltak""",
    "tr": """acaba ama ancak artık aslında az bana bazı belki ben beni benim bile bir biri birkaç
        birşey biz bize bizim bu buna bunda bundan bunu bunun burada çok çünkü da daha de defa
        değil diye dolayı en fakat gibi göre hem hep hepsi her hiç için ile ise işte kadar kendi
        ki kim kimse mı mi mu mü nasıl ne neden nerede niçin niye o olan olarak oldu olduğu olur
        on ona ondan onlar onu onun orada oysa pek rağmen sadece sanki siz sizin sonra şey şu tüm
        üzere var ve veya ya yani yine yok""",
    "ru": """а без более больше будет будто бы был была были было быть в вам вас весь во вот все
        всего всех вы где да даже для до его ее её если есть еще ещё же за здесь и из или им их к
        как какая какой когда кто куда ли лучше между меня мне много может можно мой моя мы на над
        надо наконец нас не него нее ней нельзя нет ни нибудь никогда ним них ничего но ну о об
        один он она они опять от перед по под после потом потому почти при про раз разве с сам
        свою себе себя сейчас со так такой там тебя тем теперь то тогда того тоже только том тот
        три тут ты у уж уже хорошо хоть чего чем через что чтобы чуть эти этого этой этом этот эту
        это я""",
    "uk": """а або але б без би був була були було бути в вам вас весь ви він від вже вони все де
        для до є з за зі і із й його її їм їх інші як яка який які якщо коли крім лише ми мій може
        на над нам нас не нема ні ніж але однак під після по при про робити так також там те ти
        тільки то того тому тут у хто це цей ця ці через чи що щоб щось я""",
    "el": """αλλά αν αντί από αυτά αυτή αυτό αυτός αυτών για γιατί δε δεν εγώ είμαι είναι εκεί ένα
        ένας εμείς ενώ επίσης επειδή έχει έχουν η ήταν θα ίσως κάθε και κάτι κατά κι με μετά μέσα
        μη μην μια μία μου μας να ο οι όμως όπως όταν ότι ου ούτε παρά πιο ποια ποιος πολύ που
        πρέπει πριν προς πως σας σε στα στη στην στις στο στον στους σου τα τη την της τι τις το
        τον του τους τώρα των υπάρχει χωρίς ως ώστε""",
}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; empty for one that is not listed."""
    return frozenset(_LISTS.get(language, "").split())


def word_set(text: str) -> frozenset[str]:
    """Return the set of the words of a list written as running text."""
    return frozenset(text.split())


def listed_languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a list."""
    return tuple(_LISTS)


COMMON_WORDS = word_set(
    """abbreviation ability able abort about above absolute abstract abstraction accelerate
    accelerator accept acceptable accepted accepting accepts access accessed accesses
    accessible accessing accidental accidentally according accordingly account accuracy
    accurate achieve achieved across action actions activate activated activation active acts
    actual actually added adding addition additional additionally additions address addresses
    adds adjust adjusted advanced advantage adventure affect affected affecting affects after
    again against aggregate aggregates ahead algorithm algorithms alias aliases align aligned
    alignment allocate allocated allocating allocation allocator allow allowed allowing allows
    almost along alpha already also alter alternate alternative alternatives although always
    ambiguous among amount analogous analysis analyzer analyzing anime annotations annoying
    anonymous another answer anymore anyone anything anyway anywhere apparently appear appeared
    appears append appended appending applicable application applications applied applies apply
    applying approach appropriate arbitrary architecture architectures archive archives area
    args argument arguments arithmetic around array arrays art arts asked asking asks aspect
    assembler assert assertion assign assigned assigning assignment associated associates
    assume assumed assumes assuming assumption asynchronous atomic attached attack attacker
    attacks attempt attempted attempting attempts attribute attributes aunt auntie
    authentication author authors auto autocommand autocommands autoconf automake automatic
    automatically autotools autumn availability available avoid avoided avoiding avoids aware
    away back backend background backslash backslashes backup backward backwards badly bakery
    banana bandwidth bar barbecue base based bases basic basically basis batch battle beach
    because become becomes becoming been before begin beginning begins behave behaves behavior
    behaviour behind being believe belongs below bench benefit best better between beyond
    bigger bike binaries binary bind binding bindings biology bitmap bits blank blanks blessed
    block blocking blocks boat body bogus book boolean bootstrap boss both bother bottom bound
    boundary bounds braces brackets branch branches bread break breakfast breaking breaks brief
    bring broke broken brother browser bucket buddy buffer buffers bugfixes buggy bugs build
    building builds built builtin bulk bump bunch burger burgers bus button byte bytes cache
    cached caches caching cake calculate call callback callbacks called caller calling calls
    came camera camp canary candidate candle cannot canonical capabilities capability capture
    car card cardio care careful carefully caret carried carry case cases casing castle cat
    catch caught cause caused causes causing cell certain certificate chain champion chance
    change changed changes changing channel chapter char character characters chars check
    checked checking checks cheese chef chemistry chicken child children chocolate choice
    choices choose chosen christian chunk chunks church cinema circular circumstances city
    clang clarified class classes clause clean cleaned cleanup cleanups clear cleared clearly
    click clicking client clients clipboard clock clone close closed closely closer closes
    closing clothes club coach code codes coding coffee cold collect college collisions colon
    color colors column columns combination combinations combined combining come comedy comes
    coming comma command commands commas comment comments commit common commonly communication
    community compact compare compared comparing comparison comparisons compatibility
    compatible compilation compile compiled compiler compilers compiles compiling complain
    complement complete completed completely completing completion complex complexity
    complicated component components compress compressed compression computation compute
    computed computer computing concatenated concept concerning concert concurrent condition
    conditional conditions config configurable configuration configurations configure
    configured configuring conflict conflicts conform conformance conforming conforms confused
    confusing confusion conjunction connect connected connecting connection connections
    consider considered consistency consistent consistently consists console const constant
    constants constexpr constrained constraint construct constructed constructor constructors
    constructs consult contact contain contained container containing contains content contents
    context contexts continue continues continuous contracts contrast contribute contributed
    contributions control controlled controls convenience convenient convention conversion
    conversions convert converted converting converts cope copied copies copy copying copyright
    core cores corner correct corrected correctly correctness correspond corresponding corrupt
    corrupted corruption cost could count counted counter counting counts couple course cousin
    cover coverage covered crash crashes crazy create created creates creating creation
    critical cross crypto cup curly current currently curry cursor custom cute cycle daemon
    dance dash data database databases date dates daughter dead deadlock deal dealing debug
    debugger debugging decide decided decimal declaration declarations declare declared decode
    decoding decompression decrease dedicated deep default defaulting defaults define defined
    defines defining definition definitions delay delete deleted deletes deleting deletion
    delicious delimited depend dependencies dependency dependent depending depends deprecated
    deprecation depth dereference derived describe described describes describing description
    descriptor descriptors desert design designed desired desktop destination destroyed detail
    detailed details detect detected detecting detection detects determine determined
    determines developed developer developers development device devices diagnosed diagnostic
    diagnostics dialog dictionary diff differ difference differences different differently
    differs difficult digit digits dinner direct direction directive directives directly
    directories directory disable disabled disables disabling disappear discard discover
    discovered discriminated discuss discussed discussion disk display displayed displaying
    displays dist distinct distinguish distribute distributed distribution distributions distro
    docs doctor document documentation documented documents does dog doing domain done double
    down download downloaded downloading dragon drama dream drink driven driver drivers drop
    dropped dropping drops dummy dump dumping dumplings dumps duplicate duplicated duplicates
    during dynamic dynamically each earlier early ease easier easily easy echo economics edge
    edit edited editing editor effect effective effectively effects efficient effort egg either
    element elements eleven eliminate else email embed embedded emit emits emitted emitting
    empty emulated enable enabled enables enabling enclosed encoded encoding encodings
    encountered encounters encouraged encrypted encryption ended ending endless ends enforced
    engine engineering enhanced enough ensure ensures ensuring enter entered entering entire
    entirely entries entry entrypoints enum environment environments episode equal equivalent
    errno error errors escape escaped escapes escaping especially essential essentially eval
    evaluate evaluated evaluates evaluation even evening event events eventually ever every
    everything everywhere exact exactly exam examine example examples except exception
    exceptions exchange excited exclude excluded executable executables execute executed
    executes executing execution exist existence existing exists exit exiting exits expand
    expanded expanding expansion expect expected expecting expects experience experimental
    explain explained explains explanation explicit explicitly exploration export exported
    exports expose exposed expression expressions extend extended extension extensions
    extensive extent external extra extract extracted extremely fact fail failed failing fails
    failure failures fairly fall fallback falling falls false family fantastic fantasy fast
    faster fatal fault favor favorite favour favourite feature features feedback feel fetch
    fever fewer field fields figure file filehandle filehandles filename filenames files
    filesystem filesystems filetype fill filled film films filter filtering filters final
    finally find finding finds fine finer finish finished first fish fitness five fixed fixes
    fixing flag flags flexible float floating flow flower flush flushing focus fold folding
    follow followed following follows font fonts food football force forced foreground forget
    fork forking form format formats formatted formatter formatting former forms forward found
    four frame framework free freed freeing frequently fresh friend fries from front fruit full
    fully fun func function functional functionality functions fundamental funny further future
    gained game games gaming gaps garbage garden general generally generate generated generates
    generating generation generator generic geography gets gettext getting ghost giant gift
    girl give given gives giving glad glibc glob global globally goal goes going gold golden
    gone good gorgeous goto gotos grained gran grandma grandpa granted graph great greater grep
    group groups growing guarantee guaranteed guarantees guess guide guides guitar gvim gym
    gzip hack hair half halfway ham hand handle handled handler handlers handles handling handy
    hang hangs happen happened happens happy hard hardening hardly hardware hash hashes hashref
    have having header headers heap heard heaven heavy height held hell help helper helpful
    helps hence here hero hexadecimal hidden hide hierarchy high higher highest highlight
    highlighted highlighting highly hiking hint hints historical history hold holding holds
    holiday home homework honey hook hooks hope hopefully horizontal horror horse hospital host
    hosted hostname hosts hotel house however html huge human hungry husband ice icon icons
    iconv idea ideas identical identified identifier identifiers identify identity ignore
    ignored ignores ignoring illegal image images immediate immediately implement
    implementation implemented implementing implements implicit implicitly implied implies
    import important imported importing imports impossible improve improved improvement
    improvements improving inactive inadvertently include included includes including inclusion
    incompatible incomplete inconsistent incorrect incorrectly increase increased increases
    increasing increment incurred indent indentation indented independent independently index
    indicate indicated indicates indicating indices indirect individual inevitably infinite
    info inform information inherit inheritance inherited inherits inhibit init initial
    initialization initialize initialized initializer initializing initially inject inline
    inlining inner input inputs insensitive inserted inserting insertion inserts inside inspect
    install installation installed installing installs instance instances instantiating instead
    instruction instructions integer integers integration intend intended interaction
    interactive interest interested interesting interface interfaces intermediate internal
    internally internals interpret interpretation interpreted interpreter interrupted
    intervening into intrinsics introduce introduced introduces introduction introspection
    invalid invocation invoke invoked invoking involving island issue issued issues item items
    iterator itself jacket jazz jobs join journey joy juice jump jumping jumps jungle just keep
    keeping keeps kept kernel kernels keyboard keys keyword keywords kid kids kill kind kinds
    king kitchen knight know known knows label labels lack lady lake language languages large
    larger last late later latest latter law layer layout lead leading leads league leak leaks
    learn least leave leaves leaving left legacy legal legend lemon length less lets letter
    letters level levels lexical libc libffi libraries library libtool licensed life lifted
    like likely limit limitation limitations limited limits line lines link linked linker
    linking links lion list listed listen listing lists literal literally literals little live
    load loaded loader loading loads local locale locales locally locate located location
    locations lock locking logging logic logical login logs long longer longest look looked
    looking looks lookup loop loops lose loss lost lots love lovely lower lowercase luck lunch
    machine machines macro macros made magic mail mailing main mainly maintain maintained
    maintainer maintainers maintenance major make makes making mall malloc manage managed
    management manager managers mandatory manga mango mangos manifest manipulate manner manual
    manually many mapped mapping mappings maps marco marked marker market marking marks
    marriage mask masked master match matched matches matching mate math maths matter matters
    maximum maybe meal mean meaning meaningful means meant meat mechanism mechanisms medicine
    meet member members memory mention mentioned menu menus merely merge merged mess message
    messages meta metadata method methods middle midnight might miles milk mind minimal
    minimizes minimum minor minus mips miracle misleading mismatch missing mistake mistakenly
    mitigation mixed mode model modern modes modification modified modifier modifiers modifies
    modify modifying module modules mom moment monitor monitoring monster moon more most mostly
    motion mountain mouse move moved movement moves movie movies moving much multiarch
    multibyte multiple mushroom music must mystery name named names namespace namespaces naming
    nana narrowing native nature near nearly necessarily necessary need needed needing needs
    negative neighbour neither nested nesting network never newer newline newlines newly next
    nice node nodes none nonstatic noodles normal normally notably notation note notes nothing
    notice notification novel null number numbered numbers numeric numerous nurse object
    objects obsolete obsoleted obtain obtained obvious occasionally occur occurred occurrence
    occurrences occurs ocean octal offer offers office official officially offload offloading
    offset offsets often older omit omitted once ones online only onto open opened opening
    opens operands operate operates operating operation operations operator operators opposed
    opposite optimization optimizations optimize optimized option optional optionally options
    orange order ordered ordering ordinary original originally other others otherwise outcomes
    outdated outer output outputs outputting outside over overall overflow overflows overhead
    overloaded overridden override overrides overriding overrun overview overwrite overwriting
    overwritten owned owner ownership package packages packaging packet padding page pages pair
    pairs pairwise palace paragraph paragraphs parallel parallelism parameter parameters parent
    parentheses parse parsed parser parses parsing part partial partially particular
    particularly parts party pass passed passes passing password past pasta paste patch patches
    path paths pattern patterns peace pedwarns penalty pending people pepper perfect perform
    performance performed performing performs perfume permission permissions permit permitted
    pet philosophy phone physics piano pick picnic piece pieces pipe pipes pizza place placed
    places plain plan planet plank plant platform platforms player players please plugin
    plugins plus poem poetry point pointed pointer pointers pointing points police policy pool
    pools popular popup port portability portable ported porting portion ports position
    positioned positions positive positives possibility possible possibly potato potential
    potentially power powerful practice pragma preceded precedence preceding precise precision
    prefer preference preferred prefix prefixed prefixes prepend prepended preprocessed
    preprocessing preprocessor prerequisite presence present preserve preserved president press
    pressed pressing pretty prevent prevents preview previous previously priest primarily
    primary primitives prince princess print printed printf printing prints prior priority
    private probably problem problematic problems process processed processes processing
    processor produce produced produces producing production profile program programming
    programs progress prohibition project projects prompt propagate proper properly properties
    property protect protected protection protein protocol prototype proven provide provided
    provides providing proxy psychology pub public published pull purely purpose purposes push
    pushed puts putting qualified qualifier quality queen queries query querying question
    questions queue quick quickfix quickly quit quite quiz quote quoted quotes quoting race
    rain raise raised ramen random range ranges rare rarely rather reached read readable
    reading readonly reads ready real reality really reason reasonable reasons rebuild receive
    received receives receiving recent recently recipe recognize recognized recognizes
    recommend recommended record recorded records recovery recursion recursive recursively red
    redirected redirection redistribute redraw reduce reduced reduces reduction redundant refer
    reference referenced references referred refers reflect refuse regarding regardless regex
    regexp region regions register registered registers registration regression regressions
    regular reimplemented reinterpreting rejected rejects related relative relatively release
    released releases relevant reliable reliably relies reload rely relying remain remainder
    remaining remains remember remembered remote removal remove removed removes removing rename
    renamed render rendering reordering repeat repeated repeatedly replace replaced replacement
    replaces replacing reply report reported reporting reports repository represent
    representation represented representing represents reproduce reproducible request requested
    requests require required requirement requirements requires requiring reserved reset resets
    resize resolution resolve resolved resolving resort resource resources respect respective
    respectively response responses responsible rest restart restaurant restore restored
    restores restoring restrict restricted restriction result resulted resulting results
    retrieve retrying return returned returning returns reuse reused reverse reversed revert
    review revision revisions reworded rewrite rewritten rice right rights risk river robust
    rock romance romantic room root round routine routines rule rules running runs runtime
    rvalue safe safely safer safety said salad salmon same sample sandwich sanitizer sanity
    sauce save saved saves saving says scalar scalars scan scheme school science scope scoped
    scratch screen script scripts scroll scrolled scrolling sea search searched searches
    searching season second seconds section sections secure security seed seek seem seems seen
    sees segfault select selected selecting selection selects semantics send sending sends
    sense sensitive sent sentence separate separated separately separator sequence sequences
    series serious server servers service services session sessions sets setting settings
    setuid setup several share shared sharing shark shebang shell shells shift ship shipped
    ships shirt shoes shop short shortcut shorter should show showing shown shows shrimp shut
    side signal signals signature signatures signed significant significantly silent silently
    similar similarly simple simpler simplest simplify simply since singer single sister site
    situation situations size sized sizes skip skipped skipping skips sky slash slashes sleep
    slices slightly slow slower small smaller smart smashing smile snack snapshot snapshots
    snippet snow soccer socket sockets software soldier solution solve some someone something
    sometimes somewhat somewhere song soon sort sorted sorting sorts soul soup source sourced
    sources space spaces spec special specific specifically specification specifications
    specified specifier specifies specify specifying speculative speed speeding spelling spicy
    spirit split splits splitting sport sports spring spurious squad square squat stability
    stable stack stand standalone standard standards star stars start started starting starts
    startup stat state stated statement statements states static statically statistics status
    stay stderr stdin stdout steak step steps still stop stopped stops storage store stored
    stores storing storm straight strange strawberries strawberry stream streams street strict
    strictly string strings strip stripped strongly struct structs structure structured
    structures stub student studio stuff style subclass subclasses subdirectories subdirectory
    subject submitted submitting subroutine subroutines subs subscript subsequent subset
    substitute substitution subsumption subtle succeed succeeds success successful successfully
    such sufficient suffix sugar suggest suggested suggestions suitable suite summary summer
    sun supermarket supplied supply support supported supporting supports supposed suppress
    sure surf surgery sushi swap sweet swimming switch switched switches switching sword symbol
    symbolic symbols symlink symlinks symptom sync synonym syntax system systemd systems table
    tables tabs taco tacos tags taint take taken takes taking talk tarball targeted targets
    task tasks tea teacher team teen teenage tell tells temp template templates temple
    temporarily temporary tends tennis term terminal terminals terminate terminated terms test
    testcase tested testing tests testsuite texinfo text than thanks that theatre their them
    themselves then there therefore these they thing things think third thirteen this those
    though thread threading threads three thriller through throw thrown throws thunk thus tied
    tiger time timeout timeouts timer times timestamp timestamps tiny tired title together
    toggle token tokens tomato tool toolbar tools total tour tourist toy trace track tracking
    tracks traditional trailing train trainer transfer translate translated translation
    translations transparent travel treat treated treats tree tried tries trigger triggered
    triggers trip trivial tropical trouble true truncate truncated truncation trust trying tune
    tuning turn turned turning turns tutor tutorial twelve twice type typed types typical
    typically typing typo typos ugly unable unavailable unchanged uncle uncompressed
    unconstrained undef undefined under underlying underscore understand undo unevaluated
    unexpected unexpectedly uninitialized union unique unit units university unknown unless
    unlikely unmodified unnamed unnecessary unsafe unset unsigned unsupported until untrusted
    unused unusual unwanted update updated updates updating upgrade upgraded upgrading upload
    upon upper uppercase upstream usable usage used useful useless user users uses using usual
    usually utilities utility vacation valgrind valid validate validation validity value values
    vampire variable variables variant variants variety various vars vector vegan vegetable
    verbose verify version versioned versioning versions versus vertical very victory video
    view village vimrc violates violin virtual visible void volatile vulnerability vulnerable
    wait waiting waits want wanted wants war warn warning warnings warns warranty warrior watch
    water wavefront wavefronts ways wedding weekend weird welcome well went were what whatever
    wheel when whenever where whereas whether which while white whitespace whole whose wide
    widely width wife wild wildcard wildcards wind window wine winter wish witch with within
    without wizard wolf woman wonderful word words work workaround worked workgroup workgroups
    working workout works world worry worth would wrap wrapped wrapper wrappers wrapping
    writable write writes writing written wrong xterm yank year years yoga young your yourself
    zero zeros zombie zoo"""
)


GIVEN_NAMES = word_set(
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

PLACES = word_set(
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

TITLES = word_set(
    """Mr Mrs Ms Miss Mx Dr Prof Professor Sir Dame Lord Lady Captain Capt Colonel Col General Gen
    Sergeant Sgt Reverend Rev Father Sister Brother Judge Senator Sen Governor Gov Mayor Aunt
    Auntie Uncle Herr Frau Señor Señora Monsieur Madame Mme Doctor King Queen Prince Princess
    Pope Saint"""
)
"""Words before a name that make it a person's; some of them are words of their own as well."""

BARE_TITLES = word_set("Mr Mrs Ms Mx Dr Prof Capt Col Gen Sgt Rev Sen Gov Mme Sir Herr Frau")

ORGANISATION_ENDS = word_set(
    """Inc Ltd LLC GmbH AG SE Corp Corporation Co Company PLC Group Holdings Bank University
    College Institute School Academy Hospital Clinic Infirmary Council Committee Commission
    Ministry Department Agency Association Foundation Society Union Federation Club Party
    Church Museum Library Theatre Theater Orchestra Laboratory Laboratories Labs Studios
    Records Press Airlines Airways Railways Brewery Restaurant Hotel Café Cafe Bakery Pharmacy
    Surgery Insurance Partners Consulting Solutions Systems Technologies Software Services
    Industries Motors Team Court Office Bureau Authority Alliance Trust Fund Parliament Senate
    Congress Army Navy"""
)

PLACE_ENDS = word_set(
    """Street St Road Rd Avenue Ave Lane Square Boulevard Drive Way Close Court Crescent Terrace
    River Lake Mountain Mountains Hill Hills Valley Island Islands Bay Beach Coast Sea Ocean
    Gulf Park Forest Bridge Station Airport City Town Village County District Province State
    Republic Kingdom Peninsula Desert Falls Creek Castle Palace Cathedral Harbour Harbor Port
    Canyon"""
)

PLACE_STARTS = word_set(
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

NOT_ALONE = word_set(
    """new happy good great nice south north east west central upper lower old big little inc ltd
    co corp llc gmbh president king queen prince princess director chairman minister tv bbq ep
    cd dvd pc vip diy id fps cv pdf usb html url api faq gps led ceo cto season episode level
    chapter part day week month top age grade room size number article question version like
    totally about over under around only just almost maybe"""
)
"""Words that name nothing when they stand alone, or with a number after them."""

NOT_ENTITIES = word_set(
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
