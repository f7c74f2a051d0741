//! The words by which mail programs introduce what they quote, in the languages that we know. All are in lower case.

/// Lines of a text that say: from here on somebody else wrote. Without the dashes around them.
pub(super) const ORIGINAL: [&str; 12] = [
    "original message",
    "original appointment",
    "ursprüngliche nachricht",
    "originalnachricht",
    "ursprünglicher termin",
    "message d'origine",
    "message d’origine",
    "message original",
    "rendez-vous d’origine",
    "mensaje original",
    "messaggio originale",
    "oorspronkelijk bericht",
];

/// The same of a message that is passed on, so the words after it are part of the letter.
pub(super) const FORWARDED: [&str; 18] = [
    "forwarded message",
    "begin forwarded message:",
    "forwarded by",
    "weitergeleitete nachricht",
    "anfang der weitergeleiteten nachricht:",
    "anfang der weitergeleiteten e-mail:",
    "beginn der weitergeleiteten nachricht:",
    "message transféré",
    "message transmis",
    "message réexpédié",
    "début du message réexpédié :",
    "début du message transféré :",
    "mensaje reenviado",
    "inicio del mensaje reenviado:",
    "inizio messaggio inoltrato:",
    "messaggio inoltrato",
    "doorgestuurd bericht",
    "mensagem encaminhada",
];

/// The beginnings of the subject of a letter that is passed on.
pub(super) const FORWARD_SUBJECTS: [&str; 8] = ["fw:", "fwd:", "wg:", "tr:", "rv:", "tr :", "i:", "enc:"];

/// How an attribution begins and ends: "On … wrote:". The part between has a number, that of the date or the time.
pub(super) const ATTRIBUTIONS: [(&str, &[&str]); 11] = [
    ("on ", &["wrote:", "wrote :", "writes:"]),
    ("am ", &["schrieb:", "schrieb :"]),
    ("il ", &["ha scritto:", "scrisse:"]),
    ("le ", &["a écrit :", "a écrit:", "a écrit\u{a0}:", "a écrit\u{202f}:", "écrivait :"]),
    ("el ", &["escribió:", "escribió :"]),
    ("em ", &["escreveu:"]),
    ("op ", &["schreef:"]),
    ("den ", &["skrev:"]),
    ("dnia ", &["napisał:", "napisał(a):"]),
    ("a ", &["escribió:"]),
    ("quoting ", &[":"]),
];

/// Words in the middle of an attribution that names the author last or first: "Am 3.3. schrieb Ann:", "Ann wrote on 3/3/26:".
pub(super) const WROTE: [&str; 12] = [
    " schrieb ",
    " wrote on ",
    " wrote at ",
    " wrote the following on ",
    " a écrit le ",
    " a écrit ",
    " escribió el ",
    " escribió:",
    " schreef ",
    " het volgende geschreven",
    " skrev ",
    " geschrieben:",
];

/// Names of the fields in the head that Outlook and others repeat, by their meaning.
pub(super) const FROM: [&str; 8] = ["from", "von", "de", "da", "van", "från", "fra", "expéditeur"];
pub(super) const SENT: [&str; 18] = [
    "sent",
    "date",
    "gesendet",
    "datum",
    "envoyé",
    "enviado",
    "enviado el",
    "fecha",
    "inviato",
    "data",
    "verzonden",
    "skickat",
    "sendt",
    "sent on",
    "date d'envoi",
    "gesendet am",
    "sent at",
    "wann",
];
pub(super) const TO_OR_SUBJECT: [&str; 20] = [
    "to",
    "an",
    "à",
    "para",
    "a",
    "aan",
    "till",
    "til",
    "subject",
    "betreff",
    "objet",
    "asunto",
    "oggetto",
    "assunto",
    "onderwerp",
    "ämne",
    "emne",
    "cc",
    "kopie",
    "reply-to",
];

/// The beginnings of the line that a telephone or a program adds below a letter.
pub(super) const SENT_FROM: [&str; 34] = [
    "sent from my ",
    "sent from mail for ",
    "sent from yahoo mail",
    "sent from outlook",
    "sent from samsung",
    "sent from proton",
    "sent from gmail",
    "sent via ",
    "sent with proton",
    "get outlook for ",
    "von meinem ",
    "von meiner ",
    "gesendet von ",
    "gesendet mit ",
    "diese nachricht wurde von meinem ",
    "holen sie sich outlook ",
    "outlook für ios",
    "outlook für android",
    "envoyé de mon ",
    "envoyé de ma ",
    "envoyé depuis ",
    "envoyé à partir de ",
    "télécharger outlook ",
    "obtenez outlook ",
    "obtenir outlook ",
    "enviado desde ",
    "enviado de ",
    "enviado do ",
    "obtener outlook ",
    "obtenga outlook ",
    "inviato da ",
    "scarica outlook ",
    "verzonden vanaf ",
    "verstuurd vanaf ",
];
