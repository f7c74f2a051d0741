#!/usr/bin/env python3
"""Makes the files in fixtures/files that the tests of crate reader read, and beside them (in fixtures/files/expected) their texts as the
programs that wrote them export them.

It was run once, and its results are kept. It needs LibreOffice (writer, calc, impress), poppler-utils, qpdf, abiword, gnumeric, and
in this Python: python-docx, openpyxl, python-pptx, reportlab, pypandoc_binary, extract-msg.

  make_files.py             makes all
  make_files.py sheets pdfs makes some: texts, sheets, talk, pdfs, messages (which pack what the others made)
"""

import datetime
import email.message
import email.policy
import html
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "fixtures/files"
EXPECTED = FILES / "expected"

ENGLISH = [
    "The yard at Larkfield is let from the first of May until the last day of April in the year after next.",
    "Rent falls due on the third working day of every month, and a reminder is sent after ten days.",
    "The tenant keeps the drains open, cuts the hedges twice a year and tells the landlord of any leak at once.",
    "Straw bales are stored under the northern roof, never closer than four metres to the office stove.",
    "An efficient workflow: the first official offer is filed, the final figures are confirmed, and staff affix a label.",
    "Whoever opens the gate in the morning writes the time into the blue book beside the weighing scale.",
    "Fuel is delivered on Tuesdays; the driver needs the key of the lower tank, which hangs in the workshop.",
    "Visitors sign in, wear a yellow vest and stay behind the painted line while machines are moving.",
    "The scale was calibrated in March and may be used for trade until the seal is broken.",
    "Repairs below 250 euros are ordered by the foreman, anything above needs two signatures.",
    "Three horses, eleven sheep and one rather stubborn donkey graze on the eastern meadow in summer.",
    "If the well runs dry, water is fetched from the neighbour's pond, for which he receives a ham at Christmas.",
    "The insurance covers fire, hail and burst pipes, but neither theft from open sheds nor damage by mice.",
    "Old tyres weigh down the tarpaulin over the silage; they are counted every autumn and have never been all there.",
    "Deliveries after six in the evening are announced by telephone, otherwise the gate stays closed.",
    "The loading ramp carries eight tonnes, which is less than the new lorry weighs when it is full.",
    "Beekeepers may place up to twenty hives along the southern wall and pay for them in honey.",
    "In winter the road is cleared from five o'clock onwards by whichever neighbour wakes first.",
    "Documents are kept for ten years in the steel cupboard, whose second key is with the notary.",
    "Lightning struck the old oak in August, and its trunk now serves as a bench before the dairy.",
]

OTHERS = [
    "Größere Übungsflächen dürfen nur nach schriftlicher Genehmigung der Eigentümerin für Fußgänger geöffnet werden.",
    "Der Stiftungsrat prüft jährlich, ob Auflagen, Schäden und Öffnungszeiten ordnungsgemäß veröffentlicht wurden.",
    "L'été dernier, le maître d'œuvre a reçu des pièces jointes où figuraient déjà les coûts à vérifier.",
    "El señor Núñez pidió mañana otra reunión para ver por qué costó tanto la reparación del camión.",
    "Zażółć gęślą jaźń: łąka za stodołą została skoszona, a świeże siano złożono pod dachem.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy, zatímco řezník vážil čerstvé maso u staré váhy.",
    "Η συμφωνία υπογράφηκε στην αυλή και όλοι ήπιαν καφέ κάτω από τη μεγάλη συκιά.",
    "Счёт за октябрь оплачен полностью, остаток переносится на следующий месяц без процентов.",
    "Årsmøtet på gården besluttet at høyet skal selges før jul, og at båten må males igjen.",
]

RUSSIAN = [
    "Договор аренды двора заключён на два года и продлевается, если ни одна сторона не возражает.",
    "Оплата производится ежемесячно до третьего рабочего дня, после этого отправляется напоминание.",
    "Хозяин отвечает за крышу и колодец, арендатор за ворота, изгородь и чистоту подъездной дороги.",
    "Солома хранится под северным навесом, а ключ от нижнего бака висит в мастерской у окна.",
]

JAPANESE = [
    "中庭の賃貸契約は五月一日から翌々年の四月末日までとします。",
    "家賃は毎月第三営業日に支払い、十日後に確認の手紙を送ります。",
    "干し草は北側の屋根の下に置き、ストーブから四メートル以上離してください。",
    "請求書は十月に支払われました。ありがとうございます。",
]


def paragraph(begin, n_sentences=4):
    """Sentences in a row, from this one on."""
    return " ".join(ENGLISH[(begin + n) % len(ENGLISH)] for n in range(n_sentences))


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, **more).stdout


def office(source, filter_name, target):
    """Lets LibreOffice convert a file."""
    with tempfile.TemporaryDirectory() as folder:
        run("soffice", "--headless", "--norestore", "--convert-to", filter_name, "--outdir", folder, source,
            stderr=subprocess.DEVNULL)
        made = [path for path in pathlib.Path(folder).iterdir() if path.suffix != ".gif"]  # a page's pictures are left out
        assert len(made) == 1, (source, filter_name, made)
        shutil.move(made[0], target)
    print(target.relative_to(ROOT), target.stat().st_size)


def expect(name, text):
    (EXPECTED / f"{name}.txt").write_text(text.replace("\r\n", "\n"), encoding="utf-8")


def expect_office(source, *unsaid):
    """Keeps a text as LibreOffice exports it, which leaves out notes, boxes and comments."""
    target = EXPECTED / f"{source.name}.txt"
    office(source, "txt:Text (encoded):UTF8", target)
    expect(source.name, "\n".join([target.read_text(encoding="utf-8-sig"), *unsaid]))


def expect_pdf(source):
    expect(source.name, run("pdftotext", "-enc", "UTF-8", source, "-").decode())


# Texts. The source is OpenDocument in one XML file, which LibreOffice reads and writes in every other format.

FLAT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0"
 xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"
 xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"
 xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2"
 office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.%(kind)s">
<office:meta><dc:title>%(title)s</dc:title></office:meta>
%(styles)s
<office:body><office:%(kind)s>%(body)s</office:%(kind)s></office:body>
</office:document>
"""

TEXT_STYLES = """<office:font-face-decls><style:font-face style:name="S" svg:font-family="'DejaVu Serif'"/></office:font-face-decls>
<office:styles>
<style:default-style style:family="paragraph"><style:paragraph-properties fo:margin-bottom="0.2cm"/>
<style:text-properties style:font-name="S" fo:font-size="11pt" fo:language="en" fo:country="GB"/></style:default-style>
<style:style style:name="Standard" style:family="paragraph" style:class="text"/>
<style:style style:name="Heading_20_1" style:display-name="Heading 1" style:family="paragraph" style:parent-style-name="Standard"
 style:default-outline-level="1"><style:text-properties fo:font-size="18pt" fo:font-weight="bold"/></style:style>
<style:style style:name="Heading_20_2" style:display-name="Heading 2" style:family="paragraph" style:parent-style-name="Standard"
 style:default-outline-level="2"><style:text-properties fo:font-size="14pt" fo:font-weight="bold"/></style:style>
<style:style style:name="Title" style:family="paragraph" style:parent-style-name="Standard" style:class="chapter">
<style:text-properties fo:font-size="24pt" fo:font-weight="bold"/></style:style>
</office:styles>
<office:automatic-styles>
<style:style style:name="Break" style:family="paragraph" style:parent-style-name="Heading_20_1">
<style:paragraph-properties fo:break-before="page"/></style:style>
<style:style style:name="Two" style:family="section"><style:section-properties>
<style:columns fo:column-count="2" fo:column-gap="0.8cm"/></style:section-properties></style:style>
<style:style style:name="Bold" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="Box" style:family="graphic"><style:graphic-properties style:wrap="none"
 style:horizontal-pos="left" style:vertical-pos="from-top"/></style:style>
<text:list-style style:name="Dots"><text:list-level-style-bullet text:level="1" text:bullet-char="•"/></text:list-style>
<text:list-style style:name="Numbers"><text:list-level-style-number text:level="1" style:num-format="1"
 style:num-suffix="."/></text:list-style>
<style:page-layout style:name="L"><style:page-layout-properties fo:page-width="21cm" fo:page-height="29.7cm"
 fo:margin-top="2cm" fo:margin-bottom="2cm" fo:margin-left="2cm" fo:margin-right="2cm"/></style:page-layout>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="L"/></office:master-styles>"""


def p(text, style="Standard"):
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def h(level, text, style=None):
    style = style or f"Heading_20_{level}"
    return f'<text:h text:style-name="{style}" text:outline-level="{level}">{text}</text:h>'


def listed(items, style):
    points = "".join(f"<text:list-item>{p(item)}</text:list-item>" for item in items)
    return f'<text:list text:style-name="{style}">{points}</text:list>'


def table(name, rows):
    """A table. A cell may be a text or `(text, columns, rows)`, the latter for one that covers others, which are None."""
    def cell(value):
        if value is None:
            return "<table:covered-table-cell/>"
        text, columns, rows = value if isinstance(value, tuple) else (value, 1, 1)
        return (f'<table:table-cell table:number-columns-spanned="{columns}" table:number-rows-spanned="{rows}">'
                f"{p(text)}</table:table-cell>")
    lines = "".join(f'<table:table-row>{"".join(map(cell, row))}</table:table-row>' for row in rows)
    width = len(rows[0])
    return f'<table:table table:name="{name}"><table:table-column table:number-columns-repeated="{width}"/>{lines}</table:table>'


PRICES = [
    ["Item", "Unit", "Price", "Since"],
    ["Straw bale", "piece", "4.20", "1 March"],
    ["Hay, second cut", "tonne", "185.00", "1 July"],
    ["Größe XL | Säcke", "dozen", "12.75", "15 August"],
    [("Together for members", 2, 1), None, "190.00", "1 July"],
]


NOTE = "The notary in Market Street keeps a copy of this agreement."
BOX = "Emergency number of the water board: 0800 555 0199."


def handbook():
    note = ('<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
            + p(NOTE) + "</text:note-body></text:note>")
    box = ('<draw:frame draw:style-name="Box" text:anchor-type="paragraph" svg:width="8cm" svg:height="2cm"><draw:text-box>'
           + p(BOX) + "</draw:text-box></draw:frame>")
    comment = "<office:annotation><dc:creator>Ann</dc:creator>" + p("Check this figure again.") + "</office:annotation>"
    return FLAT % {"kind": "text", "title": "Handbook of the yard", "styles": TEXT_STYLES, "body": "".join([
        p("Handbook of the yard", "Title"),
        h(1, "Terms of the lease"), p(paragraph(0)), p(ENGLISH[4] + note), p(paragraph(5, 3)),
        h(2, "Duties"), p("The tenant has three duties:"),
        listed(["to keep the drains open", "to cut the hedges twice a year", "to report every leak"], "Dots"),
        p("In case of fire one proceeds in this order:"),
        listed(["ring the bell", "close the gas", "leave by the northern gate"], "Numbers"),
        h(1, "Prices", "Break"), p(paragraph(8)), table("Prices", PRICES), p(paragraph(12)),
        p(f'The list of <text:a xlink:href="https://yard.example/prices">current prices</text:a> hangs '
          f'<text:span text:style-name="Bold">behind</text:span> the door.<text:line-break/>Below it is a second line'
          f'<text:tab/>with a tab.{comment}'),
        h(1, "Other languages", "Break"), *[p(sentence) for sentence in OTHERS], p(box + paragraph(2, 3)),
        h(2, "Closing words"), p(paragraph(16)),
    ])}


def columns():
    body = "".join([h(1, "News of the valley"), '<text:section text:style-name="Two" text:name="Two">',
                    *[p(paragraph(3 * n, 5)) for n in range(7)], "</text:section>",
                    h(1, "Second page", "Break"), p(paragraph(7, 6)), p(paragraph(1, 6))])
    return FLAT % {"kind": "text", "title": "News of the valley", "styles": TEXT_STYLES, "body": body}


def texts(work):
    flat = work / "handbook.fodt"
    flat.write_text(handbook(), encoding="utf-8")
    for ending, filter_name in [("odt", "odt"), ("docx", "docx"), ("rtf", "rtf"), ("doc", "doc"), ("pdf", "pdf"),
                                ("html", "html:HTML (StarWriter)")]:
        target = FILES / f"handbook.{ending}"
        office(flat, filter_name, target)
        if ending in {"odt", "docx", "rtf"}:
            expect_office(target, NOTE, BOX)
        elif ending == "html":
            expect_office(target)
        elif ending == "pdf":
            expect_pdf(target)
    flat = work / "columns.fodt"
    flat.write_text(columns(), encoding="utf-8")
    office(flat, "pdf", FILES / "columns.pdf")
    expect_pdf(FILES / "columns.pdf")
    # The same text as other programs write it.
    other_texts(work)


def other_texts(work):
    import docx
    import pypandoc
    document = docx.Document()
    document.core_properties.title = "A letter to the council"
    document.add_heading("A letter to the council", 0)
    document.add_paragraph(paragraph(2))
    document.add_heading("What we ask for", 1)
    for item in ["a new gate", "a lamp at the well", "gravel for the road"]:
        document.add_paragraph(item, style="List Bullet")
    grid = document.add_table(rows=0, cols=3, style="Table Grid")
    for row in [["Work", "Days", "Costs"], ["Gate", "3", "1,250 €"], ["Lamp", "1", "310 €"]]:
        for cell, text in zip(grid.add_row().cells, row):
            cell.text = text
    document.add_page_break()
    document.add_heading("Reasons", 2)
    document.add_paragraph(paragraph(9, 6))
    document.add_paragraph(OTHERS[0])
    section = document.sections[0]
    section.header.paragraphs[0].text = "Yard of Larkfield"
    document.save(FILES / "letter.docx")
    expect_office(FILES / "letter.docx")

    markdown = (FILES / "notes.md")
    markdown.write_text("\n".join([
        "# Notes of the meeting", "", paragraph(1), "", "## Decisions", "", "- The gate is *painted green*.",
        "- The [price list](https://yard.example/prices) is printed again.", "", "1. First the roof.", "2. Then the well.", "",
        "| Task | Who | Until |", "|------|-----|-------|", "| Roof | Ann | May |", "| Well | Bob | June |", "",
        "```", "lease --renew yard", "```", "", "### Other business", "", paragraph(14), "", OTHERS[0], "", OTHERS[4], "",
    ]), encoding="utf-8")
    expect(markdown.name, markdown.read_text(encoding="utf-8"))
    for ending in ["docx", "odt", "rtf", "html", "pptx"]:
        target = FILES / f"notes.{ending}"
        pypandoc.convert_file(str(markdown), ending, outputfile=str(target), extra_args=["--standalone"])
        if ending in {"docx", "odt", "rtf", "html"}:
            expect_office(target)
    plain = pypandoc.convert_file(str(markdown), "plain", extra_args=["--wrap=none"])
    expect("notes.pptx", plain)
    for ending in ["rtf", "odt", "html"]:
        target = FILES / f"abi.{ending}"
        run("abiword", f"--to={ending}", f"--to-name={target}", FILES / "letter.docx", stderr=subprocess.DEVNULL)
        if target.exists():
            expect_office(target)
    # A page with what is no text: scripts, styles, templates; and a table.
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
                   for row in [["Straw bale", "piece", "4.20"], ["Hay, second cut", "tonne", "185.00"]])
    (FILES / "page.html").write_text(f"""<!DOCTYPE html><html lang="de"><head><meta charset="utf-8"><title>Hof Lerchenfeld</title>
<style>p {{ color: red }}</style><script>var secretScript = "never shown";</script></head>
<body><h1>Hof Lerchenfeld</h1><p>{html.escape(OTHERS[0])}</p><script>document.write("written by script")</script>
<h2>Preise</h2><table><tr><th>Item</th><th>Unit</th><th>Price</th></tr>{rows}</table>
<ul><li>open daily</li><li>closed on Sunday</li></ul><p onclick="alert('clickScript')">{html.escape(paragraph(6))}</p>
<template><p>templateScript</p></template><!-- a remark --><noscript>noScriptText</noscript></body></html>""", encoding="utf-8")
    expect("page.html", "\n".join(["Hof Lerchenfeld", OTHERS[0], "Preise Item Unit Price Straw bale piece 4.20",
                                   "Hay, second cut tonne 185.00 open daily closed on Sunday", paragraph(6)]))
    plain_texts()


def plain_texts():
    german = "\r\n".join(["Grüße vom Hof", "", *OTHERS[:2], "Der Preis beträgt 20 €, „wie besprochen“."])
    western = "\n".join([*OTHERS[:2], *OTHERS[2:4]]).replace("œ", "oe")
    for name, text, encoding in [
        ("utf8.txt", "\n".join([*OTHERS, *RUSSIAN, *JAPANESE]), "utf-8"),
        ("utf8-bom.txt", "\n".join(OTHERS), "utf-8-sig"),
        ("utf16.txt", "\n".join([*OTHERS, *JAPANESE]), "utf-16"),
        ("utf16-be-bare.txt", "\n".join(ENGLISH[:6] + OTHERS[:3]), "utf-16-be"),
        ("utf16-japanese-bare.txt", "\n".join(JAPANESE), "utf-16-le"),
        ("windows-1252.txt", german, "cp1252"),
        ("latin-1.txt", western, "latin-1"),
        ("latin-2.txt", "\n".join(OTHERS[4:6]), "iso-8859-2"),
        ("shift-jis.txt", "\n".join(JAPANESE), "shift-jis"),
        ("koi8-r.txt", "\n".join(RUSSIAN), "koi8-r"),
        ("windows-1251.txt", "\n".join(RUSSIAN), "cp1251"),
        ("old-mac.txt", "\r".join(ENGLISH[:4]), "ascii"),
    ]:
        (FILES / name).write_bytes(text.encode(encoding))
        if "japanese" not in name:  # nothing tells that it is a text
            expect(name, text)


# Spreadsheets.

SHEET_STYLES = """<office:automatic-styles>
<number:date-style style:name="D"><number:year number:style="long"/><number:text>-</number:text><number:month number:style="long"/>
<number:text>-</number:text><number:day number:style="long"/></number:date-style>
<number:date-style style:name="G"><number:day number:style="long"/><number:text>.</number:text><number:month number:style="long"/>
<number:text>.</number:text><number:year number:style="long"/></number:date-style>
<number:percentage-style style:name="P"><number:number number:decimal-places="1"/><number:text>%</number:text></number:percentage-style>
<number:number-style style:name="N"><number:number number:decimal-places="2" number:min-decimal-places="2"
 number:min-integer-digits="1"/></number:number-style>
<style:style style:name="day" style:family="table-cell" style:data-style-name="D"/>
<style:style style:name="tag" style:family="table-cell" style:data-style-name="G"/>
<style:style style:name="share" style:family="table-cell" style:data-style-name="P"/>
<style:style style:name="money" style:family="table-cell" style:data-style-name="N"/>
</office:automatic-styles>"""


def ledger():
    def text(value, columns=1):
        span = f' table:number-columns-spanned="{columns}"' if columns > 1 else ""
        covered = "<table:covered-table-cell/>" * (columns - 1)
        return f'<table:table-cell office:value-type="string"{span}>{p(value)}</table:table-cell>{covered}'

    def number(value, style="money", formula=None):
        kind = "percentage" if style == "share" else "float"
        formula = f' table:formula="of:={formula}"' if formula else ""
        return (f'<table:table-cell table:style-name="{style}" office:value-type="{kind}" office:value="{value}"{formula}>'
                f"<text:p>{value}</text:p></table:table-cell>")

    def day(value, style="day"):
        return (f'<table:table-cell table:style-name="{style}" office:value-type="date" office:date-value="{value}">'
                f"<text:p>{value}</text:p></table:table-cell>")

    def row(*cells):
        return f'<table:table-row>{"".join(cells)}</table:table-row>'

    def sheet(name, *rows):
        return f'<table:table table:name="{name}"><table:table-column/>{"".join(rows)}</table:table>'

    sales = [row(text("Item"), text("Sold on"), text("Pieces"), text("Price"), text("Sum"))]
    for n, (item, at) in enumerate([("Straw bale", "2024-02-29"), ("Hay, second cut", "2024-07-01"),
                                    ("Honig aus Übersee", "2025-12-31"), ("Sacks | XL", "1999-01-01")], 2):
        sales.append(row(text(item), day(at), number(n * 3, "Default"), number(n + 0.25),
                         number(n * 3 * (n + 0.25), formula=f"[.C{n}]*[.D{n}]")))
    sales.append(row(text("Together", 4), number(172.5, formula="SUM([.E2:.E5])")))
    staff = sheet("Staff", row(text("Name"), text("Since"), text("Share")),
                  row(text("Jürgen Großmann"), day("2010-11-05", "tag"), number(0.125, "share")),
                  row(text("Żaneta Łuk"), day("2021-03-15", "tag"), number(0.5, "share")))
    lines = sheet("Remarks &amp; more", row(text("Remark")), *[row(text(sentence)) for sentence in ENGLISH[:5]])
    body = sheet("Sales", *sales) + staff + lines
    return FLAT % {"kind": "spreadsheet", "title": "Ledger", "styles": SHEET_STYLES, "body": body}


def sheets(work):
    flat = work / "ledger.fods"
    flat.write_text(ledger(), encoding="utf-8")
    for ending in ["ods", "xlsx", "xls"]:
        office(flat, ending, FILES / f"ledger.{ending}")
    # One table for each sheet, as shown: 44 comma, 34 quotes, 76 UTF-8, all sheets.
    with tempfile.TemporaryDirectory() as folder:
        run("soffice", "--headless", "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true,false,false,-1",
            "--outdir", folder, FILES / "ledger.xlsx", stderr=subprocess.DEVNULL)
        made = {path.stem.split("-", 1)[1]: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).iterdir()}
    shown = "\n".join(made[name] for name in ["Sales", "Staff", "Remarks & more"])
    expect("ledger.ods", shown)
    expect("ledger.xlsx", shown)
    # What office programs of the west still write: windows-1252, semicolons. And tabs.
    office(FILES / "ledger.xlsx", "csv:Text - txt - csv (StarCalc):59,34,1,1", FILES / "ledger.csv")
    office(FILES / "ledger.xlsx", "csv:Text - txt - csv (StarCalc):9,34,76,1", FILES / "ledger.tsv")
    expect("ledger.csv", (FILES / "ledger.csv").read_text(encoding="cp1252"))
    expect("ledger.tsv", (FILES / "ledger.tsv").read_text(encoding="utf-8"))
    run("ssconvert", FILES / "ledger.xlsx", FILES / "gnumeric.xlsx", stderr=subprocess.DEVNULL)
    run("ssconvert", FILES / "ledger.xlsx", FILES / "gnumeric.ods", stderr=subprocess.DEVNULL)
    expect("gnumeric.xlsx", shown)
    expect("gnumeric.ods", shown)

    import openpyxl
    book = openpyxl.Workbook()
    page = book.active
    page.title = "Orders"
    page.append(["Order", "Ordered at", "Due", "Paid", "Amount", "Link"])
    for n in range(1, 6):
        page.append([f"A-{n:04}", datetime.datetime(2024, n, 28, 13, 5 * n), datetime.date(2024, n + 1, 1), n % 2 == 0,
                     round(n * 19.99, 2), '=HYPERLINK("https://yard.example","page")'])
    page.merge_cells("A8:C8")
    page["A8"] = "Merged over three columns"
    wide = book.create_sheet("Hours")
    wide.append(["Day", "From", "To"])
    wide.append(["Monday", datetime.time(7, 30), datetime.time(16, 45)])
    hidden = book.create_sheet("Hidden")
    hidden.append(["Kept out of sight", 7])
    hidden.sheet_state = "hidden"
    book.save(FILES / "orders.xlsx")
    expect("orders.xlsx", "\n".join(
        ["Order Ordered at Due Paid Amount Link",
         *[f"A-{n:04} 2024-{n:02}-28 13:{5 * n:02} 2024-{n + 1:02}-01 {'TRUE' if n % 2 == 0 else 'FALSE'} {round(n * 19.99, 2)}"
           ' =HYPERLINK("https://yard.example","page")' for n in range(1, 6)],
         "Merged over three columns", "Day From To Monday 07:30 16:45", "Kept out of sight 7"]))


# Presentations.

def talk(work):
    from pptx import Presentation
    from pptx.util import Inches
    show = Presentation()
    show.core_properties.title = "The yard in ten minutes"
    first = show.slides.add_slide(show.slide_layouts[0])
    first.shapes.title.text = "The yard in ten minutes"
    first.placeholders[1].text = "A talk for new neighbours"
    first.notes_slide.notes_text_frame.text = "Greet everybody by name and mention the honey."
    points = show.slides.add_slide(show.slide_layouts[1])
    points.shapes.title.text = "Öffnungszeiten & Preise"
    frame = points.placeholders[1].text_frame
    frame.text = ENGLISH[9]
    for sentence in ENGLISH[10:12]:
        frame.add_paragraph().text = sentence
    points.notes_slide.notes_text_frame.text = OTHERS[0]
    grid = show.slides.add_slide(show.slide_layouts[5])
    grid.shapes.title.text = "A table"
    cells = grid.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(8), Inches(2)).table
    for y, row in enumerate([["Work", "Days", "Costs"], ["Gate", "3", "1250"], ["Lamp | bright", "1", "310"]]):
        for x, text in enumerate(row):
            cells.cell(y, x).text = text
    box = grid.shapes.add_textbox(Inches(1), Inches(5), Inches(6), Inches(1))
    box.text_frame.word_wrap = True
    box.text_frame.text = ENGLISH[3]
    group = grid.shapes.add_group_shape()
    inner = group.shapes.add_textbox(Inches(1), Inches(6), Inches(4), Inches(1))
    inner.text_frame.text = "Words in a group of shapes"
    show.save(FILES / "talk.pptx")
    for ending in ["odp", "pdf"]:
        office(FILES / "talk.pptx", ending, FILES / f"talk.{ending}")
    office(FILES / "talk.odp", "pptx", FILES / "talk-office.pptx")
    expect_pdf(FILES / "talk.pdf")
    slides = (EXPECTED / "talk.pdf.txt").read_text(encoding="utf-8")
    for name in ["talk.pptx", "talk.odp", "talk-office.pptx"]:
        expect(name, slides + "\nGreet everybody by name and mention the honey.\n" + OTHERS[0] + "\n")


# PDF as other programs write it.

def pdfs(work):
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen import canvas
    from reportlab.platypus import BaseDocTemplate, Frame, FrameBreak, PageBreak, PageTemplate, Paragraph, Table
    pdfmetrics.registerFont(TTFont("Serif", "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf"))
    style = getSampleStyleSheet()
    style["BodyText"].fontName = "Serif"
    target = FILES / "report.pdf"
    width, height = A4
    frames = [Frame(50, 60, width / 2 - 60, height - 120), Frame(width / 2 + 10, 60, width / 2 - 60, height - 120)]
    report = BaseDocTemplate(str(target), pagesize=A4, title="Report on the yard", invariant=1,
                             pageTemplates=[PageTemplate(frames=frames)])

    class Marked(Paragraph):
        def draw(self):
            key = self.getPlainText()
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(key, key, 0)
            super().draw()

    report.build([
        Marked("Summary", style["Heading1"]), *[Paragraph(paragraph(2 * n, 5), style["BodyText"]) for n in range(4)], FrameBreak(),
        Marked("Umlauts", style["Heading1"]), *[Paragraph(text, style["BodyText"]) for text in OTHERS[:6]], PageBreak(),
        Marked("Prices", style["Heading1"]),
        Table([["Work", "Days", "Costs"], ["Gate", "3", "1250"], ["Lamp", "1", "310"]],
              style=[("GRID", (0, 0), (-1, -1), 0.5, "black")]),
        *[Paragraph(paragraph(3 * n + 1, 5), style["BodyText"]) for n in range(3)],
    ])
    expect_pdf(target)
    # An old typewriter's way: standard fonts, no Unicode map, many small pieces.
    target = FILES / "typed.pdf"
    page = canvas.Canvas(str(target), pagesize=A4, invariant=1)
    for n in range(3):
        page.setFont("Helvetica", 11)
        for line in range(12):
            page.drawString(70, 760 - 16 * line, ENGLISH[(n * 6 + line) % 20][:80])
        page.drawString(70, 500, f"Straße, Größe, Übung, café: Seite {n + 1}")
        page.showPage()
    page.save()
    expect_pdf(target)
    run("qpdf", "--encrypt", "", "owner", "128", "--use-aes=y", "--", FILES / "typed.pdf", FILES / "owner-locked.pdf")
    run("qpdf", "--encrypt", "secret", "owner", "256", "--", FILES / "typed.pdf", FILES / "locked.pdf")
    expect_pdf(FILES / "owner-locked.pdf")


# Messages and archives.

def messages(work):
    letter = email.message.EmailMessage()
    letter["From"] = "Jürgen Großmann <juergen@yard.example>"
    letter["To"] = "Ann Lark <ann@council.example>"
    letter["Cc"] = "Żaneta Łuk <zaneta@yard.example>"
    letter["Subject"] = "Angebot für das neue Tor – Größe XL"
    letter["Date"] = "Tue, 05 Nov 2024 09:30:00 +0100"
    letter["Message-ID"] = "<offer-1@yard.example>"
    letter.set_content("Dear Ann,\n\n" + "\n".join(ENGLISH[5:9]) + "\n" + OTHERS[0] + "\n\nJürgen\n")
    letter.add_alternative("<p>Dear Ann,</p>" + "".join(f"<p>{html.escape(s)}</p>" for s in ENGLISH[5:9] + OTHERS[:1])
                           + "<p>Jürgen</p>", subtype="html")
    letter.add_attachment((FILES / "ledger.csv").read_bytes(), maintype="text", subtype="csv", filename="Preisübersicht.csv")
    letter.add_attachment((FILES / "typed.pdf").read_bytes(), maintype="application", subtype="pdf", filename="typed.pdf")
    letter.set_boundary("boundary-of-the-offer")
    for part in letter.walk():
        if part.get_content_type() == "multipart/alternative":
            part.set_boundary("boundary-of-its-text")
    (FILES / "offer.eml").write_bytes(letter.as_bytes(policy=email.policy.SMTP))
    csv_text = (EXPECTED / "ledger.csv.txt").read_text(encoding="utf-8")
    pdf_text = (EXPECTED / "typed.pdf.txt").read_text(encoding="utf-8")
    body = letter.get_body(("plain",)).get_content()
    people = "From Jürgen Großmann juergen@yard.example To Ann Lark ann@council.example Cc Żaneta Łuk zaneta@yard.example"
    expect("offer.eml", f"{people} Date 2024-11-05 08:30 UTC\n{body}\n{csv_text}\n{pdf_text}")

    message(FILES / "offer.msg", body)
    with zipfile.ZipFile(FILES / "mixed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ["letter.docx", "ledger.csv", "notes.md", "typed.pdf", "shift-jis.txt", "talk.odp"]:
            archive.writestr(zipfile.ZipInfo(f"Unterlagen/{name}", (2024, 1, 1, 0, 0, 0)), (FILES / name).read_bytes(),
                             zipfile.ZIP_DEFLATED)
    names = ["ledger.csv", "letter.docx", "notes.md", "shift-jis.txt", "talk.odp", "typed.pdf"]
    expect("mixed.zip", "\n".join((EXPECTED / f"{name}.txt").read_text(encoding="utf-8") for name in names))


def message(target, body):
    """A message as Outlook lays it out, through a library that writes compound files."""
    from extract_msg import OleWriter
    writer = OleWriter()

    def entry(tag, value):
        return struct.pack("<IIQ", tag, 6, value)

    def store(folder, head, texts, files=()):
        entries = b""
        for number, text in texts:
            data = text.encode("utf-16-le")
            writer.addEntry([*folder, f"__substg1.0_{number:04X}001F"], data)
            entries += entry(number << 16 | 0x1F, len(data) + 2)
        for number, data in files:
            writer.addEntry([*folder, f"__substg1.0_{number:04X}0102"], data)
            entries += entry(number << 16 | 0x102, len(data))
        writer.addEntry([*folder, "__properties_version1.0"], head + entries)

    sent = int((datetime.datetime(2024, 11, 5, 8, 30) - datetime.datetime(1601, 1, 1)).total_seconds()) * 10_000_000
    writer.addEntry(["__nameid_version1.0"], storage=True)
    for stream in ["00020102", "00030102", "00040102"]:
        writer.addEntry(["__nameid_version1.0", f"__substg1.0_{stream}"], b"")
    head = struct.pack("<QIIIIQ", 0, 1, 1, 1, 1, 0) + entry(0x00390040, sent)
    page = f'<html><head><meta charset="utf-8"></head><body><p>{html.escape(body)}</p></body></html>'
    store([], head, [
        (0x001A, "IPM.Note"), (0x0037, "Angebot für das neue Tor – Größe XL"), (0x0C1A, "Jürgen Großmann"),
        (0x5D01, "juergen@yard.example"), (0x0E04, "Ann Lark"), (0x0E03, "Żaneta Łuk"), (0x1000, body.replace("\n", "\r\n")),
    ], [(0x1013, page.encode())])
    people = [("Ann Lark", "ann@council.example"), ("Żaneta Łuk", "zaneta@yard.example")]
    for n, (name, address) in enumerate(people):
        folder = f"__recip_version1.0_#{n:08X}"
        writer.addEntry([folder], storage=True)
        store([folder], bytes(8) + entry(0x0C150003, n + 1), [(0x3001, name), (0x39FE, address)])
    writer.addEntry(["__attach_version1.0_#00000000"], storage=True)
    store(["__attach_version1.0_#00000000"], bytes(8) + entry(0x37050003, 1),
          [(0x3707, "Preisübersicht.csv"), (0x370E, "text/csv")], [(0x3701, (FILES / "ledger.csv").read_bytes())])
    writer.write(str(target))
    import extract_msg
    with extract_msg.openMsg(target) as read:
        attached = read.attachments[0].data.decode("cp1252")
        to, cc = [" ".join(people[n]) for n in [0, 1]]
        sender = f"From {read.sender} To {to} Cc {cc} Subject {read.subject} Date 2024-11-05 08:30 UTC"
        expect(target.name, f"{sender}\n{read.body}\n{attached}")


def main():
    for folder in [FILES, EXPECTED]:
        folder.mkdir(parents=True, exist_ok=True)
    steps = {step.__name__: step for step in [texts, sheets, talk, pdfs, messages]}
    with tempfile.TemporaryDirectory() as work:
        for name in sys.argv[1:] or steps:
            steps[name](pathlib.Path(work))


if __name__ == "__main__":
    main()
