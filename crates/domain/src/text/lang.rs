//! Detects the language of a text, as a PostgreSQL text search configuration.

use whatlang::Lang;

/// A guess with less confidence than this is discarded.
const LEAST_LETTERS: usize = 40;
const MOST_CHARS: usize = 2_000;

/// Returns the text search configuration for a text (one that PostgreSQL 15 has), or `None` if the text is short or doubtful, or if
/// PostgreSQL has no rules for its language. The beginning of the text decides.
pub fn detect_lang(text: &str) -> Option<&'static str> {
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(at, _)| at);
    let beginning = &text[..end];
    if beginning.chars().filter(|c| c.is_alphabetic()).count() < LEAST_LETTERS {
        return None;
    }
    let guess = whatlang::detect(beginning).filter(whatlang::Info::is_reliable)?;
    Some(match guess.lang() {
        Lang::Ara => "arabic",
        Lang::Cat => "catalan",
        Lang::Dan => "danish",
        Lang::Nld => "dutch",
        Lang::Eng => "english",
        Lang::Fin => "finnish",
        Lang::Fra => "french",
        Lang::Deu => "german",
        Lang::Ell => "greek",
        Lang::Hin => "hindi",
        Lang::Hun => "hungarian",
        Lang::Hye => "armenian",
        Lang::Ind => "indonesian",
        Lang::Ita => "italian",
        Lang::Lit => "lithuanian",
        Lang::Nep => "nepali",
        Lang::Nob => "norwegian",
        Lang::Por => "portuguese",
        Lang::Ron => "romanian",
        Lang::Rus => "russian",
        Lang::Srp => "serbian",
        Lang::Spa => "spanish",
        Lang::Swe => "swedish",
        Lang::Tam => "tamil",
        Lang::Tur => "turkish",
        Lang::Yid => "yiddish",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_as_postgresql_names_them() {
        for (expected, text) in [
            (
                "english",
                "The invoice was sent on Monday, but nobody has paid it since then, and we are still waiting for an answer.",
            ),
            (
                "german",
                "Die Rechnung wurde am Montag verschickt, aber bisher hat sie niemand bezahlt, und wir warten noch auf Antwort.",
            ),
            (
                "french",
                "La facture a été envoyée lundi, mais personne ne l'a encore payée et nous attendons toujours une réponse.",
            ),
            (
                "spanish",
                "La factura se envió el lunes, pero nadie la ha pagado todavía y seguimos esperando una respuesta de ellos.",
            ),
            (
                "italian",
                "La fattura è stata inviata lunedì, ma nessuno l'ha ancora pagata e stiamo ancora aspettando una risposta.",
            ),
            (
                "dutch",
                "De factuur is maandag verstuurd, maar niemand heeft hem tot nu toe betaald en we wachten nog steeds op antwoord. Volgende week sturen wij hun daarom een vriendelijke herinnering, zodat zij deze rekening niet vergeten.",
            ),
            (
                "russian",
                "Счёт был отправлен в понедельник, но до сих пор его никто не оплатил, и мы всё ещё ждём ответа.",
            ),
            (
                "turkish",
                "Fatura pazartesi günü gönderildi, ancak şimdiye kadar kimse ödemedi ve hâlâ bir cevap bekliyoruz.",
            ),
        ] {
            assert_eq!(detect_lang(text), Some(expected), "of {text:?}");
        }
    }

    #[test]
    fn what_is_short_or_no_language_has_none() {
        for text in [
            "",
            "Hello there",
            "4711 4712 4713 — 12.5 % · 3 × 4 = 12 / 7 + 8 | 99",
            "请问发票什么时候可以付款，我们还在等待答复，谢谢您的帮助。请问发票什么时候可以付款，我们还在等待答复",
        ] {
            assert_eq!(detect_lang(text), None, "of {text:?}");
        }
    }
}
