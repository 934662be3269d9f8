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


def words(text: str) -> frozenset[str]:
    """Return the set of the words of a list written as running text."""
    return frozenset(text.split())


def languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a list."""
    return tuple(_LISTS)
