#!/usr/bin/env python3
"""Makes 50 invoices whose fields are known, the same every time, and what the reader makes of them.

  make_invoices.py --reader PROGRAM --ocr FOLDER --onnxruntime FILE            rewrite fixtures/invoices/NN.json
  make_invoices.py --reader PROGRAM --ocr FOLDER --onnxruntime FILE --pdf DIR  and keep the PDFs and scans in DIR

Each invoice is written as HTML and printed to a PDF by chromium. Poppler makes a scan of it: a grey picture at 200 dpi. PROGRAM is `tributary`, whose
command `read` reads both, the scan with the models in FOLDER and the library FILE. A fixture is {"fields": what is printed, "is_wrong": its sums do not
add up, "pages": as read in the PDF, "scan": as read in the scan}. Needs Python 3.9, chromium, poppler, and Liberation Sans for Arial. Other fonts change
what the reader takes for a table, so other pages come out: run the tests of `domain::papers` before you commit.
"""

import argparse
import dataclasses
import datetime
import html
import json
import pathlib
import random
import subprocess
import tempfile
from decimal import ROUND_HALF_UP, Decimal

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "fixtures" / "invoices"
COUNT = 50
CENT = Decimal("0.01")


@dataclasses.dataclass
class Country:
    """The way one country writes invoices."""

    currency: str
    group: str
    point: str
    money: str  # {} is the number
    date: str
    months: list
    suppliers: list
    customers: list
    cities: list
    items: list
    vat: str
    iban: str
    rates: list
    words: dict


EN_MONTHS = "January February March April May June July August September October November December".split()
DE_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
FR_MONTHS = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()
ES_MONTHS = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()
EN_ITEMS = ["Straw bale", "Oak fence post", "Delivery to site", "Consulting, site survey", "Galvanised gate 3 m", "Hourly labour",
            "Paint, 2.5 l, signal red", "Annual licence", "Rope 12 mm", "Cleaning of office, floor 2", "Printer paper A4", "Steel bolt M8 x 40"]
DE_ITEMS = ["Strohballen", "Zaunpfahl Eiche", "Anfahrt", "Beratung vor Ort", "Gartentor verzinkt 3 m", "Arbeitsstunde",
            "Farbe 2,5 l, rot", "Jahreslizenz", "Seil 12 mm", "Reinigung Büro, 2. OG", "Druckerpapier A4", "Schraube M8 x 40"]
FR_ITEMS = ["Botte de paille", "Poteau en chêne", "Livraison sur site", "Conseil et étude", "Portail galvanisé 3 m", "Heure de travail",
            "Peinture rouge", "Licence annuelle", "Corde 12 mm", "Nettoyage de bureau", "Papier A4", "Boulon M8"]
ES_ITEMS = ["Bala de paja", "Poste de roble", "Transporte", "Consultoría", "Puerta galvanizada 3 m", "Hora de trabajo",
            "Pintura roja", "Licencia anual", "Cuerda 12 mm", "Limpieza de oficina", "Papel A4", "Tornillo M8"]

EN_WORDS = dict(
    title=["INVOICE", "Invoice", "Tax invoice"], credit=["CREDIT NOTE", "Credit note"], receipt=["RECEIPT"],
    number=["Invoice number", "Invoice no.", "Invoice #", "Invoice No"], credit_number=["Credit note number", "Credit note no."],
    date=["Invoice date", "Date", "Issue date", "Date of issue"], due=["Due date", "Payment due", "Due", "Pay by"], order=["PO number", "Order number", "Your order", "Purchase order"],
    to=["Bill to", "Invoice to", "Billed to"], sender=["From", "Supplier"], vat_id=["VAT No", "VAT number", "VAT Reg No", "VAT ID"],
    description=["Description", "Item", "Details"], quantity=["Qty", "Quantity"], price=["Unit price", "Price", "Rate"], amount=["Amount", "Line total", "Total"],
    net=["Subtotal", "Net total", "Total excl. VAT", "Net amount"], tax=["VAT {}%", "VAT @ {}%", "VAT ({}%)"], total=["Total", "Total due", "Invoice total", "Total amount"],
    discount=["Discount"], shipping=["Shipping", "Carriage", "Delivery charge"], iban=["IBAN"], bank=["Bank details", "Payment details"],
    thanks=["Thank you for your business.", "Please quote the invoice number when paying.", "Payment terms: 30 days net."], pos="#")

COUNTRIES = {
    "uk": Country("GBP", ",", ".", "£{}", "{d} {month} {y}|{dd}/{mm}/{y}|{d} {mon} {y}", EN_MONTHS,
                  ["Larkfield Ltd", "Harrow & Sons Limited", "Blue Anchor Supplies Ltd", "Moorgate Timber LLP"],
                  ["Northwind Farms Ltd", "St Mary's Primary School", "Ashdown Council", "Pelham Brewery PLC"],
                  ["12 Mill Lane, Leeds LS1 4AB", "7 Station Road, Bath BA1 1AA", "201 High Street, London EC1A 1BB"],
                  EN_ITEMS, "GB{9}", "GB", [20, 5], EN_WORDS),
    "us": Country("USD", ",", ".", "${}", "{month} {d}, {y}|{mm}/{dd}/{y}|{mon} {d}, {y}", EN_MONTHS,
                  ["Cedar Ridge Inc.", "Prairie Logistics LLC", "Hudson Office Supply Co."],
                  ["Maple Street Clinic", "Redwood Partners LLC", "Brightwater Corp."],
                  ["48 Elm Street, Denver, CO 80202", "1900 Lake Ave, Chicago, IL 60601", "5 Main St, Austin, TX 78701"],
                  EN_ITEMS, "", "", [Decimal("8.25"), Decimal("7")],
                  {**EN_WORDS, "tax": ["Sales tax {}%", "Tax ({}%)"], "net": ["Subtotal"], "total": ["Total", "Total due", "Amount due"]}),
    "de": Country("EUR", ".", ",", "{} €|{} EUR", "{dd}.{mm}.{y}|{d}. {month} {y}", DE_MONTHS,
                  ["Lerchenfeld GmbH", "Holzbau Brunner GmbH & Co. KG", "Sauber & Rein GmbH", "Nordlicht Software AG"],
                  ["Bäckerei Vogt GmbH", "Stadtwerke Musterstadt", "Praxis Dr. Anna Weiß", "Kranz Logistik KG"],
                  ["Hauptstr. 12, 10115 Berlin", "Am Anger 3, 99084 Erfurt", "Ulmenweg 41, 20095 Hamburg"],
                  DE_ITEMS, "DE{9}", "DE", [19, 7], dict(
        title=["Rechnung", "RECHNUNG"], credit=["Gutschrift"], receipt=["Quittung"], number=["Rechnungsnummer", "Rechnungsnr.", "Rechnung Nr.", "Rechnungs-Nr."],
        credit_number=["Gutschriftsnummer", "Gutschrift Nr."], date=["Rechnungsdatum", "Datum"], due=["Fällig am", "Zahlbar bis", "Fälligkeitsdatum"],
        order=["Bestellnummer", "Ihre Bestellung", "Auftragsnummer"], to=["Rechnung an", "Rechnungsempfänger", "Kunde"], sender=["Absender", "Lieferant"],
        vat_id=["USt-IdNr.", "USt-ID", "Umsatzsteuer-ID"], description=["Bezeichnung", "Beschreibung", "Leistung", "Artikel"], quantity=["Menge", "Anzahl"],
        price=["Einzelpreis", "Preis", "E-Preis"], amount=["Betrag", "Gesamtpreis", "Gesamt"], net=["Nettobetrag", "Zwischensumme", "Summe netto", "Gesamt netto"],
        tax=["MwSt. {} %", "{}% USt.", "zzgl. {} % MwSt.", "Umsatzsteuer {}%"], total=["Gesamtbetrag", "Rechnungsbetrag", "Gesamtsumme", "Summe brutto"],
        discount=["Rabatt"], shipping=["Versand", "Versandkosten"], iban=["IBAN"], bank=["Bankverbindung"],
        thanks=["Vielen Dank für Ihren Auftrag.", "Das Leistungsdatum entspricht dem Rechnungsdatum.", "Zahlbar ohne Abzug."], pos="Pos.")),
    "ch": Country("CHF", "'", ".", "CHF {}|{}", "{dd}.{mm}.{y}|{d}. {month} {y}", DE_MONTHS,
                  ["Alpstein Käse AG", "Rheintal Treuhand GmbH", "Seeblick Gartenbau AG"], ["Hotel Krone AG", "Gemeinde Trogen", "Müller Transporte GmbH"],
                  ["Dorfstrasse 8, 9043 Trogen", "Bahnhofstrasse 77, 8001 Zürich", "Seestrasse 15, 6003 Luzern"],
                  DE_ITEMS, "CHE-{3}.{3}.{3} MWST", "CH", [Decimal("8.1"), Decimal("2.6")], {}),
    "fr": Country("EUR", "\u00a0", ",", "{} €", "{dd}/{mm}/{y}|{d} {month} {y}", FR_MONTHS,
                  ["Alouette SARL", "Ateliers du Marais SAS", "Boulangerie Petit SA"], ["Hôtel des Alpes SAS", "Mairie de Vienne", "Garage Dupont SARL"],
                  ["12 rue du Moulin, 69001 Lyon", "4 place de la Gare, 75012 Paris", "30 avenue Foch, 38200 Vienne"],
                  FR_ITEMS, "FR{2}{9}", "FR", [20, Decimal("5.5")], dict(
        title=["FACTURE", "Facture"], credit=["Avoir"], receipt=["Reçu"], number=["Numéro de facture", "Facture n°", "N° de facture"], credit_number=["Avoir n°"],
        date=["Date de facture", "Date", "Date d'émission"], due=["Échéance", "Date d'échéance"], order=["Bon de commande", "N° de commande"],
        to=["Facturé à", "Client"], sender=["Émetteur", "Fournisseur"], vat_id=["N° TVA", "TVA intracommunautaire"], description=["Désignation", "Description"],
        quantity=["Qté", "Quantité"], price=["Prix unitaire", "PU HT"], amount=["Montant", "Total HT", "Montant HT"], net=["Total HT", "Sous-total HT"],
        tax=["TVA {} %", "TVA ({} %)"], total=["Total TTC", "Net à payer"], discount=["Remise"], shipping=["Frais de port"], iban=["IBAN"], bank=["Coordonnées bancaires"],
        thanks=["Merci de votre confiance.", "Paiement par virement."], pos="N°")),
    "es": Country("EUR", ".", ",", "{} €", "{dd}/{mm}/{y}|{d} de {month} de {y}", ES_MONTHS,
                  ["Alondra SL", "Talleres Ruiz SA"], ["Hotel del Sol SA", "Clínica Vega SL"], ["Calle Mayor 12, 28013 Madrid", "Avenida del Mar 5, 46011 Valencia"],
                  ES_ITEMS, "ESB{8}", "ES", [21, 10], dict(
        title=["FACTURA", "Factura"], credit=["Factura rectificativa"], receipt=["Recibo"], number=["Número de factura", "Factura n.º", "N.º de factura"], credit_number=["Número de factura"],
        date=["Fecha de factura", "Fecha"], due=["Vencimiento", "Fecha de vencimiento"], order=["Número de pedido", "Pedido"], to=["Facturar a", "Cliente"],
        sender=["Emisor", "Proveedor"], vat_id=["NIF", "CIF"], description=["Descripción", "Concepto"], quantity=["Cantidad", "Cant."], price=["Precio unitario", "Precio"],
        amount=["Importe"], net=["Base imponible", "Subtotal"], tax=["IVA {} %", "IVA ({}%)"], total=["Total factura", "Total a pagar", "Total"], discount=["Descuento"],
        shipping=["Gastos de envío"], iban=["IBAN"], bank=["Datos bancarios"], thanks=["Gracias por su confianza."], pos="N.º")),
}
COUNTRIES["ch"].words = {**COUNTRIES["de"].words, "tax": ["MWST {} %", "MwSt. {}%"], "vat_id": ["UID", "MWST-Nr."], "total": ["Gesamtbetrag", "Total CHF", "Rechnungsbetrag"]}

# Most of our invoices come from where our users are.
TURNS = ["uk", "de", "us", "ch", "fr", "uk", "de", "es", "de", "uk"]
LAYOUTS = ["table", "columns", "letter", "stacked", "plain"]


def cents(amount):
    return Decimal(amount).quantize(CENT, ROUND_HALF_UP)


def plain(number):
    """A number without the zeros behind its point."""
    text = f"{Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Invoice:
    """One invoice: its country, its layout, and the values that are printed on it."""

    def __init__(self, nth):
        self.nth = nth
        self.chance = chance = random.Random(1000 + nth)
        self.code = TURNS[nth % len(TURNS)]
        self.country = COUNTRIES[self.code]
        self.layout = LAYOUTS[nth // 2 % len(LAYOUTS)]
        self.is_credit = nth % 12 == 7
        self.is_wrong = nth % 10 == 6
        self.has_two_rates = nth % 5 == 3 and self.code != "us"
        self.has_discount = nth % 7 == 2
        self.has_shipping = nth % 6 == 5
        self.word = {key: chance.choice(value) if isinstance(value, list) else value for key, value in self.country.words.items()}
        if self.word["net"] == self.word["amount"]:
            self.word["amount"] = self.country.words["amount"][0]
        self.money_form = chance.choice(self.country.money.split("|"))
        self.date_form = chance.choice(self.country.date.split("|"))
        self.supplier = chance.choice(self.country.suppliers)
        self.customer = chance.choice(self.country.customers)
        self.homes = chance.sample(self.country.cities, 2)
        year = 2026
        self.number = chance.choice(["INV-{}", "{}", "R{}", "2026-{}", "RE-2026/{}"]).format(chance.randrange(1000, 9999))
        issued = datetime.date(year, chance.randrange(1, 12), chance.randrange(1, 29))
        self.issued, self.due = issued, issued + datetime.timedelta(days=chance.choice([14, 30]))
        self.order = chance.choice(["PO-{}", "45000{}", "{}"]).format(chance.randrange(10000, 99999)) if nth % 3 == 0 else None
        n_lines = {0: 1, 1: 3, 2: 5, 3: 2, 4: 8}[nth % 5] if nth % 13 else chance.choice([25, 40])
        self.lines = [self.line() for _ in range(n_lines)]
        self.sum()
        digits = lambda n: "".join(chance.choice("123456789") for _ in range(n))
        vat = self.country.vat
        for n in "98732":
            while "{" + n + "}" in vat:
                vat = vat.replace("{" + n + "}", digits(int(n)), 1)
        self.vat_id = vat or None
        self.iban = self.make_iban(digits) if self.country.iban else None

    def line(self):
        chance = self.chance
        quantity = Decimal(chance.choice([1, 1, 2, 3, 4, 10, 12, 25])) if chance.random() < 0.85 else Decimal(chance.choice(["1.5", "0.5", "2.25"]))
        price = cents(chance.choice([chance.uniform(1, 50), chance.uniform(50, 2500)]))
        rate = Decimal(chance.choice(self.country.rates)) if self.has_two_rates else Decimal(self.country.rates[0])
        return dict(description=chance.choice(self.country.items), quantity=quantity, price=price, amount=cents(quantity * price), rate=rate)

    def sum(self):
        goods = sum(line["amount"] for line in self.lines)
        self.discount = cents(goods / 10) if self.has_discount and not self.has_two_rates else None
        self.shipping = Decimal("12.50") if self.has_shipping and not self.has_two_rates else None
        self.net = goods - (self.discount or 0) + (self.shipping or 0)
        rates = sorted({line["rate"] for line in self.lines}, reverse=True)
        if len(rates) == 1:
            self.taxes = [(rates[0], self.net, cents(self.net * rates[0] / 100))]
        else:
            bases = [(rate, sum(line["amount"] for line in self.lines if line["rate"] == rate)) for rate in rates]
            self.taxes = [(rate, base, cents(base * rate / 100)) for rate, base in bases]
        self.total = self.net + sum(tax for _, _, tax in self.taxes)
        if self.is_wrong:  # as if somebody had mistyped it
            self.total += Decimal(self.chance.choice(["9.00", "100.00", "-27.00"]))

    def make_iban(self, digits):
        country, n = self.country.iban, {"GB": 18, "DE": 18, "CH": 17, "FR": 23, "ES": 20}[self.country.iban]
        inner = ("NWBK" + digits(14)) if country == "GB" else digits(n)
        as_number = "".join(str(int(c, 36)) for c in inner + country + "00")
        text = f"{country}{98 - int(as_number) % 97:02d}{inner}"
        return " ".join(text[i:i + 4] for i in range(0, len(text), 4))

    # How values are written

    def n(self, amount):
        whole, _, part = f"{abs(cents(amount)):.2f}".partition(".")
        groups = []
        while whole:
            whole, group = whole[:-3], whole[-3:]
            groups.insert(0, group)
        return ("-" if amount < 0 else "") + self.country.group.join(groups) + self.country.point + part

    def m(self, amount):
        return ("-" if amount < 0 else "") + self.money_form.format(self.n(abs(amount)))

    def q(self, number):
        return plain(number).replace(".", self.country.point)

    def d(self, date):
        month = self.country.months[date.month - 1]
        return self.date_form.format(d=date.day, dd=f"{date.day:02}", mm=f"{date.month:02}", y=date.year, month=month, mon=month[:3])

    def heading(self):
        return self.word["credit" if self.is_credit else "title"]

    def metas(self):
        """The pairs of label and value."""
        w = self.word
        pairs = [(w["credit_number"] if self.is_credit else w["number"], self.number), (w["date"], self.d(self.issued))]
        if not self.is_credit:
            pairs.append((w["due"], self.d(self.due)))
        if self.order:
            pairs.append((w["order"], self.order))
        return pairs

    def sums(self):
        w = self.word
        rows = []
        if self.discount or self.shipping:
            goods = sum(line["amount"] for line in self.lines)
            if self.discount:
                rows.append((w["discount"] + " 10%", self.m(-self.discount)))
            if self.shipping:
                rows.append((w["shipping"], self.m(self.shipping)))
        rows.append((w["net"], self.m(self.net)))
        rows += [(w["tax"].format(self.q(rate)), self.m(tax)) for rate, _, tax in self.taxes]
        rows.append((w["total"], self.m(self.total)))
        return rows

    # How pages look

    def items(self):
        """The table of lines: its head and its rows."""
        w = self.word
        has_pos, has_rate = self.nth % 4 == 1, self.has_two_rates
        head = ([w["pos"]] if has_pos else []) + [w["description"], w["quantity"], w["price"]] + (["%"] if has_rate else []) + [w["amount"]]
        form = self.m if self.nth % 3 == 1 else self.n
        rows = []
        for i, line in enumerate(self.lines):
            row = [line["description"], self.q(line["quantity"]), form(line["price"])] + ([f"{self.q(line['rate'])}%"] if has_rate else []) + [form(line["amount"])]
            rows.append(([str(i + 1)] if has_pos else []) + row)
        return head, rows

    def footer(self):
        w = self.word
        parts = []
        if self.iban:
            parts.append(f"{w['iban']}: {self.iban}")
        if self.vat_id and self.layout != "columns":
            parts.append(f"{w['vat_id']}: {self.vat_id}")
        return parts

    def body(self):
        e, w = html.escape, self.word
        head, rows = self.items()
        n_text = len(head) - 3 - (1 if self.has_two_rates else 0)
        cell = lambda tag, i, text: f"<{tag} class={'l' if i < n_text else 'r'}>{e(text)}</{tag}>"
        items = "<table class=items><tr>" + "".join(cell("th", i, text) for i, text in enumerate(head)) + "</tr>"
        items += "".join("<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>" for row in rows) + "</table>"
        sums = "<table class=sums>" + "".join(f"<tr><td>{e(a)}</td><td class=r>{e(b)}</td></tr>" for a, b in self.sums()) + "</table>"
        home = lambda nth: "<br>".join(e(part.strip()) for part in self.homes[nth].split(",", 1))
        metas, thanks = self.metas(), f"<p>{e(w['thanks'])}</p>"
        footer = f"<p class=foot><b>{e(w['bank'])}</b><br>" + "<br>".join(map(e, self.footer())) + "</p>" if self.footer() else ""
        to = f"<div><b>{e(w['to'])}</b><br>{e(self.customer)}<br>{home(1)}</div>"
        if self.layout == "table":
            rows = "".join(f"<tr><td>{e(a)}</td><td class=r>{e(b)}</td></tr>" for a, b in metas)
            return f"<h2>{e(self.supplier)}</h2><p>{home(0)}</p><h1>{e(self.heading())}</h1><div class=two>{to}<table class=meta>{rows}</table></div>{items}{sums}{thanks}{footer}"
        if self.layout == "columns":
            vat = f"<br>{e(w['vat_id'])}: {e(self.vat_id)}" if self.vat_id else ""
            sender = f"<div><b>{e(w['sender'])}</b><br>{e(self.supplier)}<br>{home(0)}{vat}</div>"
            lines = "".join(f"<p class=tight>{e(a)}: {e(b)}</p>" for a, b in metas)
            return f"<h1>{e(self.heading())}</h1>{lines}<div class=two>{sender}{to}</div>{items}{sums}{thanks}{footer}"
        if self.layout == "letter":
            sender = f"{self.supplier} · {self.homes[0].replace(', ', ' · ')}"
            lines = "".join(f"<tr><td>{e(a)}:</td><td>{e(b)}</td></tr>" for a, b in metas[1:])
            return (f"<p class=small>{e(sender)}</p><div>{e(self.customer)}<br>{home(1)}</div><table class=meta>{lines}</table>"
                    f"<h1>{e(metas[0][0])} {e(self.number)}</h1>{items}{sums}{thanks}{footer}")
        if self.layout == "stacked":
            labels = "".join(f"<th class=l>{e(a)}</th>" for a, _ in metas)
            values = "".join(f"<td>{e(b)}</td>" for _, b in metas)
            return f"<h2>{e(self.supplier)}</h2><p>{home(0)}</p><h1>{e(self.heading())}</h1>{to}<table class=wide><tr>{labels}</tr><tr>{values}</tr></table>{items}{sums}{thanks}{footer}"
        lines = "".join(f"<p class=tight>{e(a)}: {e(b)}</p>" for a, b in metas)
        sum_lines = "".join(f"<p class=tight>{e(a)}: {e(b)}</p>" for a, b in self.sums())
        return f"<p class=tight>{e(self.supplier)}</p><p class=tight>{home(0)}</p><p>{e(self.heading())}</p>{lines}{to}{items}{sum_lines}{thanks}{footer}"

    def page(self):
        style = """@page{margin:18mm} body{font:11px Arial,sans-serif} table{border-collapse:collapse} .items,.wide{width:100%;margin:14px 0} .two{display:flex;justify-content:space-between}
        .l{text-align:left}.r{text-align:right} td,th{padding:3px 6px} .items td,.items th{border-bottom:1px solid #999} .sums{margin-left:auto} .tight{margin:2px 0}
        .small{font-size:8px} .meta{margin-left:auto} h1{font-size:20px} h2{font-size:15px}"""
        return f"<!doctype html><meta charset=utf-8><title>{html.escape(self.heading())}</title><style>{style}</style>{self.body()}"

    def fields(self):
        fields = {
            "supplier": self.supplier, "customer": self.customer, "number": self.number, "issued_on": self.issued.isoformat(),
            "due_on": None if self.is_credit else self.due.isoformat(), "currency": self.country.currency, "order_number": self.order,
            "net": f"{self.net:.2f}", "total": f"{self.total:.2f}", "iban": self.iban.replace(" ", "") if self.iban else None, "vat_id": self.vat_id,
            "discount": f"{self.discount:.2f}" if self.discount else None, "shipping": f"{self.shipping:.2f}" if self.shipping else None,
        }
        taxes = [{"rate": plain(rate), "amount": f"{tax:.2f}"} for rate, _, tax in self.taxes]
        lines = [{"description": x["description"], "quantity": plain(x["quantity"]), "unit_price": f"{x['price']:.2f}", "amount": f"{x['amount']:.2f}"} for x in self.lines]
        return {**{k: v for k, v in fields.items() if v is not None}, "taxes": taxes, "lines": lines}


def printed(invoice, pdf):
    """Prints an invoice to a PDF."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        page.write_text(invoice.page(), encoding="utf-8")
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder}/profile", f"--print-to-pdf={pdf}", page.as_uri()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)


def scanned(pdf):
    """Makes a picture of the first page."""
    picture = pdf.with_suffix(".png")
    if not picture.exists():
        subprocess.run(["pdftoppm", "-r", "200", "-gray", "-png", "-singlefile", str(pdf), str(pdf.with_suffix(""))], check=True, timeout=120)
    return picture


def read(reader, path, models):
    data = path.read_bytes()
    request = json.dumps({"name": path.name, "bytes": len(data), "models": models}).encode() + b"\n"
    out = subprocess.run([reader, "read"], input=request + data, check=True, capture_output=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    if any(line["line"] == "refused" for line in lines):
        raise SystemExit(f"{path} was refused")
    return [{key: value for key, value in line.items() if key not in ("line", "lines")} for line in lines if line["line"] == "page"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--reader", "--ocr", "--onnxruntime"):
        parser.add_argument(name, required=True)
    parser.add_argument("--pdf", type=pathlib.Path)
    args = parser.parse_args()
    models = {"onnxruntime": args.onnxruntime, "ocr": args.ocr, "threads": 1}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.pdf or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        OUT.mkdir(parents=True, exist_ok=True)
        for nth in range(COUNT):
            invoice, pdf = Invoice(nth), folder / f"{nth:02}.pdf"
            if not pdf.exists():
                printed(invoice, pdf)
            kind = "credit_note" if invoice.is_credit else "invoice"
            made = {"kind": kind, "layout": f"{invoice.code} {invoice.layout}", "is_wrong": invoice.is_wrong, "fields": invoice.fields()}
            made |= {"pages": read(args.reader, pdf, {}), "scan": read(args.reader, scanned(pdf), models)}
            (OUT / f"{nth:02}.json").write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
