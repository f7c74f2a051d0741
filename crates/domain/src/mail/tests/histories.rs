//! The ways in which mail programs write history and signatures.

/// A way to quote, with `{H}` for the history. In each, the first line is part of what is quoted.
pub struct Quoting {
    pub plain: &'static str,
    pub html: &'static str,
}

/// Each quotes a line of history that says `{H}`.
pub const QUOTINGS: [Quoting; 14] = [
    Quoting {
        plain: "On Tue, Mar 3, 2026 at 10:15 AM Bob Ray <bob@example.net> wrote:\n\n> {H}\n>\n> Bob",
        html: "<br><div class=\"gmail_quote gmail_quote_container\"><div dir=\"ltr\" class=\"gmail_attr\">On Tue, Mar 3, 2026 at 10:15 AM Bob Ray \
               &lt;<a href=\"mailto:bob@example.net\">bob@example.net</a>&gt; wrote:<br></div><blockquote class=\"gmail_quote\" \
               style=\"margin:0px\"><div>{H}</div></blockquote></div>",
    },
    Quoting {
        plain: "Am Di., 3. März 2026 um 10:15 Uhr schrieb Bob Ray <\nbob@example.net>:\n\n> {H}",
        html: "<div class=gmail_quote><div class=gmail_attr>Am Di., 3. März 2026 um 10:15 Uhr schrieb Bob Ray:<br></div>\
               <blockquote class=gmail_quote>{H}</blockquote></div>",
    },
    Quoting {
        plain: "Le mar. 3 mars 2026 à 10:15, Bob Ray <bob@example.net> a écrit :\n\n> {H}",
        html: "<div class=gmail_quote><div class=gmail_attr>Le mar. 3 mars 2026 à 10:15, Bob Ray a écrit&nbsp;:<br></div>\
               <blockquote class=gmail_quote>{H}</blockquote></div>",
    },
    Quoting {
        plain: "El mar, 3 mar 2026 a las 10:15, Bob Ray (<bob@example.net>) escribió:\n\n> {H}",
        html: "<div class=gmail_quote><div class=gmail_attr>El mar, 3 mar 2026 a las 10:15, Bob Ray escribió:<br></div>\
               <blockquote class=gmail_quote>{H}</blockquote></div>",
    },
    Quoting {
        plain: "________________________________\nFrom: Bob Ray <bob@example.net>\nSent: Tuesday, March 3, 2026 10:15 AM\nTo: Ann\nSubject: Before\n\n{H}",
        html: "<div id=\"appendonsend\"></div><hr style=\"display:inline-block\" tabindex=\"-1\"><div id=\"divRplyFwdMsg\" dir=\"ltr\">\
               <b>From:</b> Bob Ray<br><b>Sent:</b> Tuesday, March 3, 2026 10:15 AM<br><b>To:</b> Ann<br><b>Subject:</b> Before</div>\
               <div>{H}</div>",
    },
    Quoting {
        plain: "Von: Bob Ray <bob@example.net>\nGesendet: Dienstag, 3. März 2026 10:15\nAn: Ann\nCc: Team\nBetreff: Davor\n\n{H}",
        html: "<div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal><b>Von:</b> Bob Ray \
               <br><b>Gesendet:</b> Dienstag, 3. März 2026 10:15<br><b>An:</b> Ann<br><b>Betreff:</b> Davor</p></div><p>{H}</p>",
    },
    Quoting {
        plain: "De : Bob Ray <bob@example.net>\nEnvoyé : mardi 3 mars 2026 10:15\nÀ : Ann\nObjet : Avant\n\n{H}",
        html: "<div><p class=MsoNormal><b>De&nbsp;:</b> Bob Ray<br><b>Envoyé&nbsp;:</b> mardi 3 mars 2026 10:15<br><b>À&nbsp;:</b> Ann<br>\
               <b>Objet&nbsp;:</b> Avant</p></div><p>{H}</p>",
    },
    Quoting {
        plain: "De: Bob Ray <bob@example.net>\nEnviado el: martes, 3 de marzo de 2026 10:15\nPara: Ann\nAsunto: Antes\n\n{H}",
        html: "<div><p class=MsoNormal><b>De:</b> Bob Ray<br><b>Enviado el:</b> martes, 3 de marzo de 2026 10:15<br><b>Para:</b> Ann<br>\
               <b>Asunto:</b> Antes</p></div><p>{H}</p>",
    },
    Quoting {
        plain: "-----Original Message-----\nFrom: Bob Ray\nSent: Tuesday\n\n{H}",
        html: "<div id=mail-editor-reference-message-container><div><b>From: </b>Bob Ray<br><b>Date: </b>Tuesday<br><b>To: </b>Ann</div>{H}</div>",
    },
    Quoting {
        plain: "> On 3. Mar 2026, at 10:15, Bob Ray <bob@example.net> wrote:\n> \n> {H}\n> ",
        html: "<div><br><blockquote type=\"cite\"><div>On 3. Mar 2026, at 10:15, Bob Ray &lt;bob@example.net&gt; wrote:</div><br>\
               <div>{H}</div></blockquote></div>",
    },
    Quoting {
        plain: "Am 03.03.26 um 10:15 schrieb Bob Ray:\n> {H}\n>",
        html: "<div class=\"moz-cite-prefix\">Am 03.03.26 um 10:15 schrieb Bob Ray:<br></div>\
               <blockquote type=\"cite\" cite=\"mid:a@b\"><p>{H}</p></blockquote>",
    },
    Quoting {
        plain: "Le 03/03/2026 à 10:15, Bob Ray a écrit :\n> {H}",
        html: "<div class=moz-cite-prefix>Le 03/03/2026 à 10:15, Bob Ray a écrit&nbsp;:</div><blockquote type=cite>{H}</blockquote>",
    },
    Quoting {
        plain: "El 3/3/26 a las 10:15, Bob Ray escribió:\n> {H}",
        html: "<div class=moz-cite-prefix>El 3/3/26 a las 10:15, Bob Ray escribió:</div><blockquote type=cite>{H}</blockquote>",
    },
    Quoting {
        plain: "-----Ursprüngliche Nachricht-----\nVon: Bob Ray\nGesendet: Dienstag\n\n{H}",
        html: "<div class=yahoo_quoted><div>On Tuesday, 3 March 2026, 10:15, Bob Ray wrote:</div><div>{H}</div></div>",
    },
];

/// A signature, with `{S}` for its words, in plain text and in HTML.
pub const SIGNATURES: [(&str, &str); 5] = [
    (
        "-- \n{S}\n+1 555 0100",
        "<div class=\"gmail_signature\" data-smartmail=\"gmail_signature\">{S}<br>+1 555 0100</div>",
    ),
    ("--\n{S}", "<pre class=\"moz-signature\" cols=\"72\">-- \n{S}</pre>"),
    ("Sent from my iPhone", "<div id=\"AppleMailSignature\">{S}<br>Sent from my iPhone</div>"),
    ("Von meinem iPhone gesendet", "<div id=Signature><p>{S}</p></div>"),
    (
        "Get Outlook for iOS<https://aka.ms/o0ukef>",
        "<div id=\"ms-outlook-mobile-signature\">{S} <a href='https://aka.ms/x'>Outlook</a></div>",
    ),
];
