#!/usr/bin/env python3
"""Makes what `tributary bench relevance` reads out of the manuals that corpus.py reads: questions whose right document is known.

  relevance.py ROOT OWNERS OUT      OWNERS: one "package path" a line -> OUT/relevance.jsonl and OUT/questions.jsonl

relevance.jsonl   {"id", "title", "text", "package", "gold"}: a section of a page, or a short page. The gold documents, which
                  questions are about, come first; the others are in a mixed order, so any number of first lines is a fair sample.
questions.jsonl   {"id", "kind", "part", "package", "text", "document"}: part is "tune" or "held"; a package is in one of them only.
  heading         the heading of a section. No document has its own heading, neither in its title nor in its text.
  description     the line that says what a page or section is about. It is removed from the document.
  sentence        words from a sentence in the middle of the document, in another order.
  name            an identifier or figure that few documents have, and a word or two that stand near it.
  nothing         a question that no manual answers; it has no package and no document.

The same packages give the same bytes: what is chosen depends on hashes, not on a random generator. Needs only Python 3.9.
"""

import collections
import hashlib
import json
import pathlib
import re
import sys

from relevance_words import GENERIC, NOTHING, STOP, WEAK
from sections import LONGEST, SHORTEST, read_pages, said, words

QUESTIONS = 1000  # of a kind
PER_PACKAGE, PER_PAGE = 110, 3  # gold documents
SHINGLE = 8  # words; two documents that share many such runs are near duplicates
RARE = 5  # documents that may contain the name in a question

# Nothing is tuned on these. Manuals of one family are in the same part.
HELD = set(
    """apache2-doc debian-policy debian-reference-en developers-reference erlang-doc libglib2.0-doc libgtk-3-doc postgresql-doc-15
    python-sympy-doc racket-doc zsh-doc""".split()
)

# --- words ---


def content(text):
    return [word for word in words(text) if word not in STOP and len(word) > 1]


def shingles(text):
    found = words(text)
    return {" ".join(found[i : i + SHINGLE]) for i in range(len(found) - SHINGLE + 1)}


def number(*key):
    return int.from_bytes(hashlib.sha256("\n".join(key).encode()).digest()[:8], "big")


def pick(choices, *key):
    return choices[number(*key) % len(choices)]


def sentences(text):
    found = []
    for part in re.split(r"(?<=[.?!])\s+(?=[A-Z\"'(‘“])", text):
        if found and re.search(r"\b(e\.g|i\.e|etc|vs|cf|fig|no|al|resp|approx)\.$", found[-1], re.IGNORECASE):
            found[-1] += " " + part
        else:
            found.append(part)
    return found


# --- which units may be gold ---

# Pages that tell of changes, people and terms, and pages of indexes and examples.
NO_GOLD_PAGE = re.compile(
    r"(?i)(^|[/_.-])(what_?s_?new|whatsnew|release|releases|releasenotes|changes?|changelog\w*|history|news|authors|credits|contributors?|thanks|"
    r"glossary|bibliography|license|copying|gpl|fdl|faq-index|deprecat\w*|obsolete|todo|index|toc|contents|auto_examples|about|legal|"
    r"acknowledge\w*|release-\d.*|upgrading\w*|migrat\w*|roadmap\w*|people|governance|papers|talks|news-.*|relnotes\w*|errata)([/_.-]|$)"
)
NO_HEADING = re.compile(
    r"(?i)\b(above|below|finally|following|see also|example|exercises?|what'?s new|new in|new features?|changes? (in|since|from|to)|"
    r"changed|bug ?fix|deprecat|release|version \d|\d+\.\d+|footnotes?|copyright|licen[sc]e|acknowledg|contribut|further reading|table of|list of|index|"
    r"further information|credits|part \d|step \d)"
)
NO_TITLE = re.compile(r"(?i)\b(examples?|exercises?|what.?s new|release notes|change ?log|changes (in|since)|copyright|licen[sc]e|contribut|index)\b")
POINTING = re.compile(
    r"(?i)\b(this|these|those|that is|following|below|above|here|see|section|chapter|page|document|previous|next|figure|table \d|example|we|our|"
    r"shown|described|mentioned|earlier|later|same|former|latter|added in|new in|deprecated|copyright|todo|fixme|however|therefore|also|another|"
    r"such|it|they|he|she|thus|hence|instead|likewise|similarly|otherwise|appendix|manual|please|note|sorry|refer|version \d\S*)\b"
)


def telling(text):
    return [word for word in content(text) if word not in GENERIC and not word.isdigit()]


def is_prose(unit):
    """Whether most of the text is sentences in English: no code, no list of links, no table."""
    size = {"p": 0, "h": 0}
    for kind, text in unit.blocks:
        if kind == "p" and (len(text) < 40 or not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", text)):
            kind = "scrap"
        size[kind] = size.get(kind, 0) + len(text)
    text = unit.text()
    found = words(text)
    return (
        SHORTEST <= len(text) <= LONGEST
        and size["p"] >= 0.55 * len(text)
        and sum(kind == "p" and len(text) >= 60 for kind, text in unit.blocks) >= 2
        and sum(word in STOP for word in found) >= 0.25 * len(found)
        and sum(ord(char) > 0x24F and not 0x2000 <= ord(char) < 0x2300 for char in text) < 0.01 * len(text)
    )


def heading_of(unit):
    """The heading, if it is a question that a person might ask and that the text does not answer word for word."""
    heading = re.sub(r"[:.]+$", "", re.sub(r"\s+([,.:?)])", r"\1", unit.heading)).strip()
    plain = re.findall(r"[A-Za-z][a-z'’-]+", heading)
    if (
        not unit.whole
        or len(unit.page.units) == 1
        or not 3 <= len(heading.split()) <= 14
        or len(plain) < 2
        or len(telling(heading)) < 2
        or NO_HEADING.search(heading)
        or re.search(r"[(){}\[\]<>=/\\|;]|\.\.|::|->", heading)
        or sum(len(word) for word in plain) < 0.6 * len(heading.replace(" ", ""))
        or said(heading) in said(unit.text())
        or said(heading) in said(unit.title())
    ):
        return None
    return heading


SAYS = re.compile(
    r"(?i)\b(is|are|can|may|will|provides?|allows?|lets|defines?|controls?|describes?|represents?|specif(y|ies)|contains?|supports?|uses?|"
    r"determines?|returns?|enables?|implements?|generates?|creates?|sets?|offers?|manages?|handles?|has|have|consists?|includes?|makes?|gives?|"
    r"performs?|computes?|calculates?|adds?|removes?|reads?|writes?|holds?|stores?|works?|runs?|means?|takes?|causes?|requires?|helps?)\b"
)
NO_DESCRIPTION = re.compile(
    r"(?i)(if|when|once|after|before|for|in|as|but|and|or|so|then|while|because|since|let|note|to|on|at|with|by|assume|suppose|sometimes|every|most|"
    r"many|some|several|starting|there|no|not|all|both|each|one|unlike|like|first|second|finally|now|currently|recently|today|unfortunately|you|i)\b"
)


def description_of(unit):
    """The question and the place of its block: the line below the name of a page, or else a first sentence that says what a thing is."""
    page = unit.page
    if page.name_line and (len(page.units) == 1 or re.fullmatch(r"(?i)description|details|overview", unit.heading) or unit is page.units[0]):
        line = re.split(r"\s+[-–—]+\s+", page.name_line, maxsplit=1)[-1].rstrip(".")
        return (line, None) if 4 <= len(line.split()) <= 25 and len(content(line)) >= 3 and said(line) != said(page.title) else None
    at = next((at for at, (kind, _) in enumerate(unit.blocks) if kind not in ("code", "dt")), None)
    if at is None or unit.blocks[at][0] != "p" or "\n" in unit.blocks[at][1]:
        return None
    first = sentences(unit.blocks[at][1])[0]
    plain = sum(bool(re.fullmatch(r"[\"'(“‘]?[A-Za-z][a-z'’-]*[\"')”’]?[,.;]?", word)) for word in first.split())
    if (
        not 6 <= len(first.split()) <= 25
        or not first.endswith(".")
        or not re.match(r"[A-Z]", first)
        or len(content(first)) < 4
        or plain < 0.8 * len(first.split())
        or POINTING.search(first)
        or NO_DESCRIPTION.match(first)
        or re.search(r"[{}\[\]<>=|\\;:]|\.\s", first)
    ):
        return None
    # The summary of a function stands below its signature. Elsewhere the sentence has to be about what the heading names.
    heading = page.title if len(page.units) == 1 else unit.heading
    is_summary = at > 0 and unit.blocks[at - 1][0] == "code" and len(unit.blocks[at - 1][1]) < 400
    about = {word[:5] for word in telling(heading)} & {word[:5] for word in telling(first)}
    if not is_summary and not (about and SAYS.search(" ".join(first.split()[:10]))):
        return None
    return first.rstrip("."), at


def taken_out(unit, description):
    """The unit's blocks without the description."""
    line, at = description
    if at is None:
        return [block for block in unit.blocks if block[0] != "name"]
    rest = unit.blocks[at][1][len(line) :].lstrip(". ")
    return unit.blocks[:at] + ([("p", rest)] if rest else []) + unit.blocks[at + 1 :]


def candidates(pages):
    """Returns (unit, heading or None, description or None) for every unit that may be gold."""
    headings = collections.Counter()
    for page in pages:
        for unit in page.units:
            headings.update(map(said, [unit.heading] + [text for kind, text in unit.blocks if kind == "h"]))
    found = []
    for page in pages:
        if not page.is_html or NO_GOLD_PAGE.search(page.name.split("/", 3)[-1]) or NO_TITLE.search(page.title):
            continue
        for unit in page.units:
            if not is_prose(unit) or NO_HEADING.search(unit.heading):
                continue
            heading, description = heading_of(unit), description_of(unit)
            if heading and headings[said(unit.heading)] > 1:
                heading = None
            if description:
                rest = "\n\n".join(text for _, text in taken_out(unit, description))
                if len(rest) < SHORTEST or said(description[0]) in said(rest) or said(description[0]) in said(unit.title()):
                    description = None
            if heading or description:
                found.append((unit, heading, description))
    return found


def said_elsewhere(pages, asked):
    """Those of the questions that another section says word for word: a table of contents, or a phrase that everybody uses."""
    starts = collections.defaultdict(list)
    for unit, question in asked:
        found = words(question)
        starts[" ".join(found[:3])].append((found, unit))
    elsewhere = set()
    for page in pages:
        for unit in page.units:
            found = words(unit.text())
            for i in range(len(found) - 2):
                for question, owner in starts.get(" ".join(found[i : i + 3]), ()):
                    if owner is not unit and found[i : i + len(question)] == question:
                        elsewhere.add(f" {' '.join(question)} ")
    return elsewhere


class Shingled:
    """Texts by their shingles, to find the near duplicates of another."""

    def __init__(self):
        self.by_shingle, self.sizes = collections.defaultdict(list), []

    def add(self, found):
        for shingle in found:
            self.by_shingle[shingle].append(len(self.sizes))
        self.sizes.append(len(found))

    def is_near(self, found, share_of_known, share_of_found):
        hits = collections.Counter(nth for shingle in found if shingle in self.by_shingle for nth in self.by_shingle[shingle])
        return any(n >= share_of_known * max(1, self.sizes[nth]) or n >= share_of_found * len(found) for nth, n in hits.items())


def choose(pages):
    """Makes the units gold that questions are asked about, and returns them with their heading and description."""
    found = candidates(pages)
    elsewhere = said_elsewhere(
        pages, [(unit, question) for unit, heading, description in found for question in (heading, description and description[0]) if question]
    )
    ready = []
    for unit, heading, description in found:
        heading = heading if heading and said(heading) not in elsewhere else None
        description = description if description and said(description[0]) not in elsewhere else None
        ready.append((unit, heading, description))
    known, chosen, asked = Shingled(), [], set()
    per_package, per_page, n = collections.Counter(), collections.Counter(), collections.Counter()

    def take(unit, heading, description):
        blocks = taken_out(unit, description) if description else unit.blocks
        shingled = shingles("\n".join(text for _, text in blocks))
        new = {said(text) for text in (heading, description and description[0]) if text}
        if per_page[unit.page.name] == PER_PAGE or known.is_near(shingled, 0.3, 0.3) or new & asked:
            return False
        known.add(shingled)
        asked.update(new)
        if description and description[1] is None:  # the line of the name may stand in another section of the page
            for other in unit.page.units:
                other.blocks = [block for block in other.blocks if block[0] != "name"]
        unit.gold, unit.blocks = True, blocks
        chosen.append((unit, heading, description and description[0]))
        per_package[unit.page.package] += 1
        per_page[unit.page.name] += 1
        n.update(["heading"] * bool(heading) + ["description"] * bool(description))
        return True

    # First those that two questions are asked about, so that there are few documents; one package after the other.
    for kinds in ({"heading", "description"}, {"description"}, {"heading"}):
        waiting = collections.defaultdict(list)
        for one in sorted(ready, key=lambda one: number(one[0].page.name, one[0].heading), reverse=True):
            if kinds == {kind for kind, text in (("heading", one[1]), ("description", one[2])) if text}:
                waiting[one[0].page.package].append(one)
        while any(waiting.values()):
            for package in sorted(waiting):
                if per_package[package] == PER_PACKAGE or any(n[kind] == QUESTIONS for kind in kinds):
                    waiting[package] = []
                while waiting[package] and not take(*waiting[package].pop()):
                    pass
    return chosen, known


# --- documents ---


def pieces(blocks):
    """Cuts blocks into texts of up to LONGEST characters."""
    text = ""
    for _, block in blocks:
        while len(block) > LONGEST:
            at = block.rfind("\n", 1, LONGEST) if "\n" in block[1:LONGEST] else block.rfind(" ", 1, LONGEST)
            at = at if at > 0 else LONGEST
            yield from filter(None, (text, block[:at]))
            text, block = "", block[at:].strip("\n")
        if text and len(text) + len(block) + 2 > LONGEST:
            yield text
            text = ""
        text = f"{text}\n\n{block}" if text else block
    if text:
        yield text


def document(unit, name, text):
    return {"id": name, "title": unit.title() or unit.page.title, "text": text, "package": unit.page.package, "gold": unit.gold}


def distractors(pages, known):
    """Yields the documents that no question is about: what is left of the pages, without what nearly repeats a gold document."""
    seen = set()
    for page in pages:
        nth = 0
        runs, joined = [], False
        for unit in page.units:
            if unit.gold:
                joined = False
                continue
            if joined and sum(len(text) for _, text in runs[-1][1]) < SHORTEST:
                runs[-1][1].extend(([("h", unit.heading)] if unit.heading else []) + unit.blocks)
            else:
                runs.append((unit, list(unit.blocks)))
            joined = True
        for unit, blocks in runs:
            for text in pieces(blocks):
                digest = hashlib.sha256(said(text).encode()).digest()
                if len(text) < SHORTEST / 2 or digest in seen or len(words(text)) < 20:
                    continue
                seen.add(digest)
                shingled = shingles(text)
                if known.is_near(shingled, 0.3, 0.5):
                    continue
                nth += 1
                yield document(unit, f"{page.name}#{nth}", text)


# --- questions ---

FIGURE = r"(?:RFC|PEP|[Vv]ersion|[Pp]ort|[Ee]rror|[Ss]tatus|[Cc]ode|[Ss]ignal|[Ll]evel) \d[\d.]*\d|\d[\d.,]*\d[A-Za-z]{0,3} [a-z]{3,}"
NAME = re.compile(
    r"(?<![\w.$@/<>*%#{}-])"
    rf"({FIGURE}|--?[a-z][\w-]{{3,}}|[A-Za-z_]\w*(?:[.:]{{1,2}}[A-Za-z_]\w*)+|[A-Za-z_]\w{{3,}}|0x[0-9A-Fa-f]{{2,8}})"
    r"(?![\w@/$]|[.-]\w)"
)


def names(text):
    """The identifiers of a text, and its figures together with what they count or number."""
    for match in NAME.finditer(text):
        name = match.group(1)
        if len(name) > 40 or len(name) < 4 or re.search(r"(?i)foo|bar\b|baz|example|^my|abc", name):
            continue
        if is_figure(name):
            if name.split()[1] not in STOP | WEAK:
                yield name, match.start()
        elif re.search(r"_|\d|[a-z][A-Z]|[a-z][.:]+[a-z]|^-", name) or re.fullmatch(r"[A-Z]{4,}", name):
            yield name, match.start()


def is_figure(name):
    return " " in name


def prose_sentences(unit):
    return [s for kind, text in unit.blocks if kind == "p" for s in sentences(" ".join(text.split()))]


def sentence_questions(key, unit):
    """Words of a sentence from the middle, the second half first, without stop words and 30% of the others."""
    every = prose_sentences(unit)
    fitting = []
    for sentence in every[len(every) // 5 : len(every) - len(every) // 5]:
        plain = sum(bool(re.fullmatch(r"[\"'(“‘]?[A-Za-z][a-z'’-]*[\"')”’]?[,.;:]?", word)) for word in sentence.split())
        if (
            10 <= len(sentence.split()) <= 32
            and plain >= 0.75 * len(sentence.split())
            and len(content(sentence)) >= 7
            and re.search(r"[a-z)][.?!]$", sentence)
            and not re.match(r"(?i)(changed|new|added|deprecated) ", sentence)
        ):
            fitting.append(sentence)
    for sentence in sorted(fitting, key=lambda s: number(key, s)):
        bare = [word.strip(".,;:!?\"'()[]“”‘’`*") for word in sentence.split()]
        bare = [word for word in bare if word and word.lower() not in STOP | {"e.g", "i.e"} and re.search(r"\w", word)]
        dropped = set(sorted(range(len(bare)), key=lambda i: number(key, sentence, str(i)))[: round(0.3 * len(bare))])
        half = len(bare) // 2
        order = list(range(half, len(bare))) + list(range(half))
        question = " ".join(bare[i] for i in order if i not in dropped)
        if 4 <= len(question.split()) <= 14 and len(set(telling(question)) - WEAK) >= 4 and said(question) not in said(unit.text()):
            yield sentence, question.lower()


def name_questions(key, unit, holders, common):
    """A rare name and one or two words of its sentence: the rarest of those that the document says more than once."""
    found, topics = [], collections.Counter(words(unit.title() + "\n" + unit.text()))
    for sentence in prose_sentences(unit):
        for name, start in names(sentence):
            if not 6 <= len(sentence.split()) <= 45 or said(name) in said(unit.title()):
                continue
            if not 1 <= len(holders[name.lower()]) <= RARE or re.search(r"(?i)\b(section|table|chapter|figure|page) $", sentence[:start]):
                continue
            if len(words(name)) == 1 and not name.startswith("--") and common[words(name)[0]] > RARE:
                continue  # a plain word in capitals
            near = {
                word
                for word in map(str.lower, re.findall(r"(?<![\w.$@/_<>-])[A-Za-z][a-z]{3,}(?![\w@/$_<>=(]|[.-]\w)", sentence))
                if word not in STOP | WEAK and word not in name.lower() and common[word] >= 20 and topics[word] > 1 and not word.endswith("ly")
            }
            if near:
                found.append((name, sorted(near, key=lambda word: (common[word], word))[:2]))
    found.sort(key=lambda one: (not is_figure(one[0]), not one[0].startswith("-"), number(key, one[0])))
    for name, near in found:
        typed = name.lower() if number(key, name, "case") % 3 == 0 else name
        shapes = ["{n} {a}", "{a} {n}"] + ["{a} {b} {n}", "{n} {a} {b}", "{a} {n} {b}"] * (len(near) - 1)
        a, b = near[0], near[-1]
        yield name, pick(shapes, key, name).format(a=a, b=b, n=typed)


def nothing_questions():
    """Each template is filled in with words of its own lists, no two of a template with the same word."""
    found = []
    for template, *lists in NOTHING:
        for nth in range(4):
            filled = template
            for place, choices in enumerate(lists):
                shift = number("nothing", template, str(place))
                filled = filled.replace("{}", choices[(shift + nth) % len(choices)], 1)
            found.append(filled)
    found.sort(key=lambda text: number("nothing", text))
    return found


def main(root, owners, out):
    owner_of = dict(reversed(line.rstrip("\n").split(" ", 1)) for line in open(owners, encoding="utf-8"))
    pages = read_pages(root, owner_of)
    chosen, known = choose(pages)
    chosen.sort(key=lambda one: number("gold", one[0].page.name, one[0].heading))
    documents, questions = [], []
    for nth, (unit, heading, description) in enumerate(chosen, 1):
        unit.id = f"gold-{nth:04}"
        documents.append(document(unit, unit.id, unit.text()))
        for kind, text in (("heading", heading), ("description", description)):
            if text:
                questions.append((kind, unit, text))
    documents += sorted(distractors(pages, known), key=lambda d: number(d["id"]))

    write(out, documents, questions + list(quoted(chosen, documents)))


def quoted(chosen, documents):
    """Yields the questions of the kinds sentence and name. Both need to know what the other documents say."""
    sayings = {said(sentence) for unit, _, _ in chosen for sentence in prose_sentences(unit)}
    wanted = {name.lower() for unit, _, _ in chosen for name, _ in names(unit.text())}
    said_by, common, holders = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for d in documents:
        common.update(set(words(d["text"])))
        said_by.update(sayings.intersection(map(said, sentences(" ".join(d["text"].split())))))
        for name in wanted.intersection(name.lower() for name, _ in names(d["text"] + "\n" + d["title"])):
            if len(holders[name]) <= RARE:
                holders[name].append(d)
    asked = set()
    for unit, _, _ in chosen:
        found = [question for sentence, question in sentence_questions(unit.id, unit) if said_by[said(sentence)] <= 1]
        yield from (("sentence", unit, question) for question in found[:1])
        for name, question in name_questions(unit.id, unit, holders, common):
            needed = set(words(question))
            same = [d["id"] for d in holders[name.lower()] if needed <= set(words(d["title"] + " " + d["text"]))]
            if same == [unit.id] and question not in asked:
                asked.add(question)
                yield "name", unit, question
                break


def write(out, documents, questions):
    lines, counts = [], collections.Counter()
    for kind in ("heading", "description", "sentence", "name"):
        for _, unit, text in [q for q in questions if q[0] == kind][:QUESTIONS]:
            counts[kind] += 1
            package = unit.page.package
            part = "held" if package in HELD else "tune"
            line = {"id": f"{kind}-{counts[kind]:04}", "kind": kind, "part": part, "package": package, "text": text, "document": unit.id}
            lines.append(line)
    for nth, text in enumerate(nothing_questions(), 1):
        lines.append({"id": f"nothing-{nth:04}", "kind": "nothing", "part": "held" if nth % 2 else "tune", "text": text})
    for name, rows in (("relevance.jsonl", documents), ("questions.jsonl", lines)):
        with open(out / name, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    check(documents, lines)


def check(documents, questions):
    """Fails if a label is wrong or something is missing."""
    golds = {d["id"]: d for d in documents if d["gold"]}
    wrong = []
    if len({d["id"] for d in documents}) != len(documents):
        wrong.append("a document's id is used twice")
    for question in questions:
        if question["kind"] == "nothing":
            continue
        document = golds.get(question["document"])
        if not document:
            wrong.append(f"{question['id']} is about a document that does not exist")
        elif question["kind"] in ("heading", "description") and said(question["text"]) in said(document["title"] + "\n" + document["text"]):
            wrong.append(f"{question['id']} is contained in its document")
    # A text that contains a gold document contains the words in its middle too.
    middles = {}
    for gold in golds.values():
        found = words(gold["text"])
        at = len(found) // 2 - 6
        middles.setdefault(" ".join(found[at : at + 12]), []).append(gold)
    for document in documents:
        found = words(document["text"])
        for i in range(len(found) - 11):
            for gold in middles.get(" ".join(found[i : i + 12]), ()):
                if gold is not document and said(gold["text"]) in said(document["text"]):
                    wrong.append(f"{gold['id']} is contained in {document['id']}")
    kinds = collections.Counter((q["kind"], q["part"]) for q in questions)
    for kind, least in (("heading", 1000), ("description", 1000), ("sentence", 1000), ("name", 500), ("nothing", 200)):
        if kinds[kind, "tune"] + kinds[kind, "held"] < least:
            wrong.append(f"only {kinds[kind, 'tune'] + kinds[kind, 'held']} questions of the kind {kind}")
    if len({(q["kind"], q["text"].lower()) for q in questions}) != len(questions):
        wrong.append("a question is asked twice")
    packages = collections.Counter(d["package"] for d in golds.values())
    if packages.most_common(1)[0][1] > 0.08 * len(golds):
        wrong.append(f"{packages.most_common(1)[0][0]} has too many gold documents")
    size = sum(len(d["text"]) for d in documents)
    if size < 80_000_000:
        wrong.append(f"only {size} characters")
    print(f"{len(golds)} gold documents from {len(packages)} packages among {len(documents)}, {size} characters, about {size // 900} chunks of 900")
    for (kind, part), n in sorted(kinds.items()):
        print(f"{n:5} {kind}, {part}")
    print("held:", " ".join(sorted({q["package"] for q in questions if q["part"] == "held" and "package" in q})))
    if wrong:
        sys.exit("\n".join(wrong[:20]))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
