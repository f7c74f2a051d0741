//! Those who write the corpus.

/// Somebody who writes in a language: name, subject, sentences, and charsets that have its letters.
pub struct Author(pub &'static str, pub &'static str, pub [&'static str; 3], pub &'static [&'static str]);

pub const AUTHORS: [Author; 10] = [
    Author(
        "Ann Lee",
        "Site visit on Friday",
        ["The pump is ready.", "It costs 805 USD, all in.", "See you there."],
        &["us-ascii", "utf-8", "iso-8859-1", "windows-1252"],
    ),
    Author(
        "Lee, Ann \"A.\" (Bay)",
        "Re: [bay] 50% = half; \"urgent\"?",
        ["Is 1 < 2 & 3 > 2?", "= signs = everywhere, =3D too.", "A\ttab and a trailing dot ."],
        &["us-ascii", "utf-8", "iso-8859-15"],
    ),
    Author(
        "Jürgen Groß",
        "Angebot für Köln: Prüfung",
        ["Die Pumpe läuft größtenteils.", "Grüße aus München", "Übermorgen öffnen wir früher."],
        &["utf-8", "iso-8859-1", "windows-1252", "iso-8859-15"],
    ),
    Author(
        "Zoé Lefèvre",
        "Réunion déplacée à l'été",
        ["La pompe est prête, n'est-ce pas ?", "Ça coûte 80 € environ.", "À bientôt, où que tu sois."],
        &["utf-8", "windows-1252", "iso-8859-15"],
    ),
    Author(
        "Íñigo Muñoz",
        "¿Cuándo llega el pedido nº 7?",
        ["La bomba está lista.", "¡Mañana será otro día!", "Señor, aquí está el piñón."],
        &["utf-8", "iso-8859-1", "windows-1252"],
    ),
    Author(
        "Łukasz Żak",
        "Zażółć gęślą jaźń",
        ["Pompa jest już gotowa.", "Źródło ciepła działa.", "Do zobaczenia w Łodzi."],
        &["utf-8", "iso-8859-2", "windows-1250"],
    ),
    Author(
        "Анна Петрова",
        "Встреча в пятницу",
        ["Насос готов.", "Стоимость та же, что и раньше.", "До встречи!"],
        &["utf-8", "koi8-r", "windows-1251", "iso-8859-5"],
    ),
    Author(
        "Γιώργος Παππάς",
        "Συνάντηση την Παρασκευή",
        ["Η αντλία είναι έτοιμη.", "Κοστίζει το ίδιο.", "Τα λέμε εκεί."],
        &["utf-8", "iso-8859-7", "windows-1253"],
    ),
    Author(
        "山田 太郎",
        "金曜日の打ち合わせについて",
        ["ポンプの準備ができました。", "費用は同じです。", "よろしくお願いします。"],
        &["utf-8"],
    ),
    Author(
        "Zoë 🦊",
        "🎉 Done — finally 🎉",
        ["It works 👍🏽!", "Family: 👨‍👩‍👧‍👦 at home.", "“Quotes” … and — dashes."],
        &["utf-8"],
    ),
];
