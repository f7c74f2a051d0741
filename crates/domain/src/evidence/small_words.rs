//! Lists of small words that the rules of [evidence](super) need, in the languages that our users write most.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::words::are_alike;

type Words = LazyLock<HashSet<&'static str>>;

/// Whether a word denies what its clause says.
pub(super) fn is_denial(folded: &str) -> bool {
    DENIALS.contains(folded) || folded.ends_with("n't") || folded.starts_with("n'")
}

/// Whether a word turns what its clause says into something else: a guess, a refusal, a bound, one of two. Left out, the rest would be false.
pub(super) fn is_turning(folded: &str) -> bool {
    TURNING.contains(folded) || TURNING_VERBS.iter().any(|verb| are_alike(verb, folded))
}

/// Whether a word makes all of its sentence depend on something.
pub(super) fn is_condition(folded: &str) -> bool {
    CONDITIONS.contains(folded)
}

/// Whether a word decides what a sentence says, however short it is.
pub(super) fn is_decisive(folded: &str) -> bool {
    DECISIVE.contains(folded)
}

/// Whether a word says nothing by itself.
pub(super) fn is_minor(folded: &str) -> bool {
    MINOR.contains(folded)
}

/// Whether a word says what the next one has to do with those before: who does it, and to whom.
pub(super) fn is_preposition(folded: &str) -> bool {
    PREPOSITIONS.contains(folded) || is_of_time_or_place(folded)
}

/// Prepositions that change nothing before a number or a date.
pub(super) fn is_of_time_or_place(folded: &str) -> bool {
    matches!(folded, "on" | "in" | "at" | "am" | "im")
}

/// `of`, in the languages that have it.
pub(super) fn is_of(folded: &str) -> bool {
    matches!(folded, "of" | "for" | "von" | "vom" | "für" | "de" | "du" | "del" | "van" | "pour" | "para")
}

/// Forms of `be`. With them `paid` is what somebody got.
pub(super) fn is_be(folded: &str) -> bool {
    matches!(
        folded,
        "is" | "are" | "be" | "been" | "being" | "ist" | "sind" | "wird" | "werden" | "est" | "sont" | "son"
    ) || is_past_be(folded)
}

pub(super) fn is_past_be(folded: &str) -> bool {
    matches!(folded, "was" | "were" | "war" | "waren")
}

/// Whether a clause of its own may begin with this word after a comma.
pub(super) fn begins_clause(folded: &str) -> bool {
    matches!(folded, "and" | "but" | "while" | "und" | "aber")
}

/// Words for somebody or something that was named before.
pub(super) fn is_reference(folded: &str) -> bool {
    REFERENCES.contains(folded)
}

/// Words for those who wrote a text and those who got it.
pub(super) fn is_first_or_second_person(folded: &str) -> bool {
    matches!(folded, "i" | "we" | "you" | "ich" | "wir" | "je" | "nous" | "vous" | "yo" | "ik" | "wij" | "jag" | "vi")
}

static DENIALS: Words = LazyLock::new(|| {
    "not no never none nobody nothing nowhere neither nor cannot without hardly dont doesnt didnt wont cant isnt arent \
     wasnt werent wouldnt couldnt shouldnt havent hasnt hadnt nicht nichts kein keine keinen keinem keiner keines nie \
     niemals niemand weder ohne pas jamais sans ne aucun aucune rien ni sin nunca ningún ninguna ninguno nada nadie \
     tampoco não nem sem nenhum nenhuma non senza nessun nessuno niet geen niets nooit niemand zonder inte ingen inget \
     inga aldrig utan ikke ikkje intet aldri aldrig uden uten ei не нет ни без никогда nie bez değil 不 没 沒 未 无 無 非"
        .split_whitespace()
        .collect()
});

static TURNING: Words = LazyLock::new(|| {
    "may might could would should can more less fewer least most almost nearly half approximately roughly circa ca approx \
     maximum minimum max min or either instead rather otherwise else false wrong untrue incorrect mistaken \
     allegedly supposedly reportedly apparently perhaps maybe possibly probably likely unlikely barely scarcely formerly \
     previously former until till within up down off out according deny denies denied denying denial fail fails \
     failed failing failure stop stops stopped stopping refusal cancelled canceled cancellation withdrew withdrawal \
     void invalid unable hope hopes hoped wish wishes try tries tried trying plan plans planned planning offer offers \
     offered think thinks thought said says say told tells tell wrote writes forgot forgets forgotten fake hoax joke too daily weekly monthly quarterly \
     yearly annually hourly täglich wöchentlich monatlich jährlich \
     oder vielleicht fast etwa mehr weniger mindestens höchstens könnte könnten würde würden sollte sollten kann \
     angeblich weigert weigerte verweigert abgelehnt storniert gekündigt statt bis halb falsch ou presque moins pourrait \
     devrait refusé refuse annulé selon faux casi menos quizás podría debería rechazó canceló según falso misschien \
     bijna meer minder zou weigert geannuleerd eller nästan kanske nesten måske vägrar nægter nekter nekar отказался \
     почти может если или"
        .split_whitespace()
        .collect()
});

/// Endings aside.
const TURNING_VERBS: [&str; 26] = [
    "refuse", "decline", "reject", "cancel", "withdraw", "dispute", "doubt", "allege", "claim", "suppose", "assume",
    "believe", "expect", "estimate", "pretend", "promise", "propose", "suggest", "demand", "request", "attempt",
    "consider", "intend", "threaten", "avoid", "revoke",
];

static CONDITIONS: Words = LazyLock::new(|| {
    "if unless except excluding whether only provided assuming when whenever once depending wenn falls \
     sofern außer nur ob si sauf salvo indien tenzij behalve alleen endast bara utom kun hvis если только"
        .split_whitespace()
        .collect()
});

static DECISIVE: Words = LazyLock::new(|| {
    "before after until since more less least most over under above below only always all every both half twice \
     double must may might if unless except up down off out from should would could can will shall or because so \
     when then another other same still yet any one i we you said says say states stated mentions"
        .split_whitespace()
        .collect()
});

static MINOR: Words = LazyLock::new(|| {
    "a an the and or but of to in on at by for from with as into about is are was were be been being am has have \
     had having do does did it its he she they them their his her him we us our you your i me my this that these \
     those there here who whom whose which what when where why how so than then also too very just will would shall \
     can could should one some any such other another own same still yet out up down off per via while because said \
     says say states stated mentions according currently however and/or yes please unfortunately fortunately kindly bitte leider der die das den dem des ein eine einen \
     einem einer und oder aber von vom zu zum zur im auf bei mit für aus nach ist sind war waren wird werden hat \
     haben er sie es wir ihr sich dass auch noch als wie le la les un une du de et ou à au aux en dans sur pour par \
     avec est sont il elle ce cette qui que el los las una y o con del al se su sus son por para lo com os dos um \
     uma é"
        .split_whitespace()
        .collect()
});

static PREPOSITIONS: Words = LazyLock::new(|| {
    "of to by for from with about into via per von vom zu zum zur auf bei mit für aus nach du de à au aux dans sur pour \
     par avec con del al por para com"
        .split_whitespace()
        .collect()
});

static REFERENCES: Words = LazyLock::new(|| {
    "it its he him his she her they them their this that these those er sie es ihr il elle lui"
        .split_whitespace()
        .collect()
});
