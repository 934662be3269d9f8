"""Words so common in lower case that a capital alone does not make a name of them."""

from __future__ import annotations

from memctl.understand.stopwords import words

COMMON_WORDS = words(
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
