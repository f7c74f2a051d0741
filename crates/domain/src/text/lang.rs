//! Detects the language of a text, as a PostgreSQL text search configuration.

use std::collections::HashSet;

use whatlang::{Lang, Script};

/// A text with fewer letters has no language that could be told.
const LEAST_LETTERS: usize = 40;
const MOST_CHARS: usize = 2_000;
/// One word in so many must be one of the little words that hold a language's sentences together.
const ONE_IN: usize = 12;

/// Returns the text search configuration for a text (one that PostgreSQL 15 has), or `None` if the text is short or doubtful, or if
/// PostgreSQL has no rules for its language. The beginning of the text decides.
pub fn detect_lang(text: &str) -> Option<&'static str> {
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(at, _)| at);
    let beginning = &text[..end];
    if beginning.chars().filter(|c| c.is_alphabetic()).count() < LEAST_LETTERS {
        return None;
    }
    let guess = whatlang::detect(beginning)?;
    if guess.script() == Script::Latin {
        return by_little_words(beginning, guess.is_reliable().then(|| configuration(guess.lang())).flatten());
    }
    configuration(guess.lang()).filter(|_| guess.is_reliable())
}

/// Latin letters are shared by most languages, and what is written about computers is full of names and commands that look like any of them. So
/// the little words decide: the language with the most of them, if it has enough. Where two have about as many, `guess` decides between them.
fn by_little_words(text: &str, guess: Option<&'static str>) -> Option<&'static str> {
    let lower = text.to_lowercase();
    // Single letters stand for anything in formulas and code.
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().nth(1).is_some()).collect();
    let count = |(lang, little): &(&'static str, &str)| {
        let little: HashSet<&str> = little.split(' ').collect();
        let found: Vec<&str> = words.iter().copied().filter(|word| little.contains(word)).collect();
        let n_different = found.iter().collect::<HashSet<_>>().len();
        let least = if Some(*lang) == guess { 2 } else { LEAST_DIFFERENT };
        (n_different >= least).then_some((found.len(), *lang))
    };
    let mut counts: Vec<(usize, &'static str)> = LITTLE_WORDS.iter().filter_map(count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let (most, best) = *counts.first()?;
    if most * ONE_IN < words.len() {
        return None;
    }
    let is_near = |count: usize| count * 5 >= most * 4;
    let guessed = counts.iter().find(|(count, lang)| is_near(*count) && Some(*lang) == guess);
    Some(guessed.map_or(best, |(_, lang)| lang))
}

/// So many different ones, or two of the language that was guessed: a single word may be a name, or a word of code.
const LEAST_DIFFERENT: usize = 4;

/// The commonest words of each language written in Latin letters that say nothing by themselves.
const LITTLE_WORDS: [(&str, &str); 17] = [
    ("catalan", "el la els les de que i en un una per amb no és del al com més són aquest ha seva però també"),
    ("danish", "og i at det er en af til på den for med der ikke de som et har fra var vi jeg men om kan skal blev"),
    (
        "dutch",
        "de het een en van in is dat op te zijn met voor niet aan er om ook als maar bij nog wordt hij worden deze",
    ),
    (
        "english",
        "the of and to in is that it for on with as are this be by or an not from at which you if can will has was",
    ),
    ("finnish", "ja on ei se että oli joka myös mutta kun ovat hän ole tai sen niin kuin jos vain mukaan sekä voi"),
    ("french", "de la le les et des en un une du que est pour dans qui par sur pas au ne ce avec plus sont il nous a"),
    (
        "german",
        "der die und das den von zu mit ist des im für auf nicht ein eine als auch dem es an werden aus wird wir sie",
    ),
    ("hungarian", "a az és hogy nem is egy ez meg de csak már volt van ha mint el vagy még ki azt aki lehet"),
    (
        "indonesian",
        "yang dan di ini untuk dengan dari tidak pada dalam itu adalah akan oleh ke atau juga sebagai telah bisa ada",
    ),
    ("italian", "di e il la che in un per è del non una con i le da si sono della al come più gli anche dei ha nel"),
    ("lithuanian", "ir yra kad į iš su tai bet kaip buvo ne už apie jo savo dar tik taip arba nuo po mes jau ar"),
    ("norwegian", "og i det er en av til på for med at som ikke den har de fra et om var vi jeg men kan skal ble hva"),
    ("portuguese", "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das foi são"),
    ("romanian", "de și în a la cu care nu o este pe un din că să se mai au fost pentru sau ce dar prin sunt lui"),
    ("spanish", "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ha son"),
    ("swedish", "och i att det som en på är av för med den till inte om har de ett var från vi men kan så jag"),
    (
        "turkish",
        "ve bir bu da de için ile çok olarak daha gibi olan ne kadar var en sonra ama ancak değil kendi her hâlâ",
    ),
];

/// The text search configuration of a language, if PostgreSQL has one.
fn configuration(lang: Lang) -> Option<&'static str> {
    Some(match lang {
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
                "english",
                "a2dismod MODULE... disables the specified modules; a2enmod -q, --quiet: no output. /etc/apache2/mods-enabled a list of modules is printed if no MODULE is given on the command line",
            ),
            (
                "danish",
                "Fakturaen blev sendt i mandags, men ingen har betalt den endnu, og vi venter stadig på et svar fra dem.",
            ),
            (
                "portuguese",
                "A fatura foi enviada na segunda-feira, mas ninguém a pagou até agora e ainda estamos à espera de uma resposta.",
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
            "libssl-dev libcurl4 zlib1g-dev -L/usr/lib -lssl -lcrypto configure make install chmod chown mkdir printf sudo apt dpkg xargs",
            "请问发票什么时候可以付款，我们还在等待答复，谢谢您的帮助。请问发票什么时候可以付款，我们还在等待答复",
        ] {
            assert_eq!(detect_lang(text), None, "of {text:?}");
        }
    }
}
