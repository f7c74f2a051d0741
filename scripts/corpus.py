#!/usr/bin/env python3
"""Turns unpacked documentation packages into what `tributary bench search` reads.

  corpus.py ROOT OUT      ROOT/usr/share/doc/… -> OUT/corpus.jsonl and OUT/queries.txt

Each page is one document, {"id": path, "title": …, "text": …}. Every 50th document is held out: it is not in the corpus, and
its sentences are the queries. So a query matches the corpus in subject, but never word for word. The same packages give the
same bytes. Needs only Python 3.9.
"""

import gzip
import hashlib
import html.parser
import json
import pathlib
import re
import sys

HOLD_OUT = 50
QUERIES = 1000
SHORTEST = 400  # characters; shorter pages are lists of links
# Files that are not manual pages: generated indexes, sources shown as pages, change logs. Translations are duplicates.
NO_PAGE = re.compile(r"(^|/)(genindex|py-modindex|search|index-all|allclasses|changelog|copyright|_sources|_modules|NEWS)", re.IGNORECASE)
TRANSLATED = re.compile(r"/(translations|(da|de|es|fr|it|ja|ko|pt|ru|tr|zh)([-_][A-Za-z]{2})?)/")

BLOCKS = set("address article blockquote body dd div dl dt figcaption h1 h2 h3 h4 h5 h6 li main ol p pre section table td th tr ul br hr".split())
SILENT = set("script style head nav footer header aside noscript template svg math button select".split())


class Page(html.parser.HTMLParser):
    """Extracts the plain text of a page: an empty line between blocks, white space kept in `pre` and collapsed elsewhere."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks, self.line, self.title = [], [], []
        self.silent = self.pre = 0
        self.in_title = False

    def handle_starttag(self, tag, attrs):
        if tag == "title":
            self.in_title = True
        elif tag in SILENT and tag != "head":
            self.silent += 1
        if tag in BLOCKS:
            self.end_block()
        if tag == "pre":
            self.pre += 1

    def handle_endtag(self, tag):
        if tag == "title":
            self.in_title = False
        elif tag in SILENT and tag != "head":
            self.silent = max(0, self.silent - 1)
        if tag in BLOCKS:
            self.end_block()
        if tag == "pre":
            self.pre = max(0, self.pre - 1)

    def handle_data(self, data):
        if self.in_title:
            self.title.append(data)
        elif not self.silent:
            self.line.append(data)

    def end_block(self):
        text = "".join(self.line).replace("\u00b6", "").replace("\u00a0", " ")
        text = text.strip("\n").rstrip() if self.pre else " ".join(text.split())
        if text.strip():
            self.blocks.append(text)
        self.line = []


def read(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace").replace("\0", "")


def convert(path):
    """Returns title and text, or None if the file is not a page."""
    name = path.name[:-3] if path.suffix == ".gz" else path.name
    text = read(path)
    if name.endswith((".html", ".htm", ".xhtml")):
        page = Page()
        page.feed(text)
        page.close()
        page.end_block()
        title, text = " ".join("".join(page.title).split()), "\n\n".join(page.blocks)
    else:
        lines = [line.strip(" =-*#~^") for line in text.splitlines()]
        title, text = next((line for line in lines if line), ""), "\n".join(line.rstrip() for line in text.splitlines()).strip()
    return (title or name, text) if len(text) >= SHORTEST else None


def pages(root):
    """Yields path and name of every file that may be a page, in order of name."""
    found = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        name = path.relative_to(root).as_posix()
        kind = re.search(r"\.(x?html?|txt|rst)(\.gz)?$", name)
        if kind and not NO_PAGE.search(name) and not TRANSLATED.search(name):
            found.append((path, name, kind.group(1), "/".join(name[: kind.start()].split("/")[-2:])))
    made = {stem for _, _, kind, stem in found if "htm" in kind}
    for path, name, kind, stem in found:
        # A plain text file beside an HTML page of the same name is the source of that page.
        if "htm" in kind or stem not in made:
            yield path, name


def documents(root):
    seen = set()
    for path, name in pages(root):
        found = convert(path)
        if not found:
            continue
        digest = hashlib.sha256(found[1].encode()).digest()
        if digest not in seen:
            seen.add(digest)
            yield {"id": name, "title": found[0], "text": found[1]}


def sentences(text):
    """Yields sentences of 5 to 12 words that read like a person's question or remark."""
    for block in text.split("\n\n"):
        for sentence in re.split(r"(?<=[.?!])\s+", " ".join(block.split())):
            words = sentence.split()
            plain = sum(bool(re.fullmatch(r"[A-Za-z][a-z'-]*[,.?!]?", word)) for word in words)
            if 5 <= len(words) <= 12 and plain == len(words) and re.match(r"[A-Z].*[a-z][.?]$", sentence):
                yield sentence.rstrip(".")


def queries(held_out, known):
    """Takes one sentence of each held-out document in turn, so that none of them dominates."""
    waiting = [list(dict.fromkeys(s for s in sentences(d["text"]) if s.lower() not in known)) for d in held_out]
    chosen = {}
    for turn in range(max(map(len, waiting), default=0)):
        for found in waiting:
            if turn < len(found) and len(chosen) < QUERIES:
                chosen.setdefault(found[turn].lower(), found[turn])
    return list(chosen.values())


def main(root, out):
    n, size, chunks, known, held_out = 0, 0, 0, set(), []
    with open(out / "corpus.jsonl", "w", encoding="utf-8") as corpus:
        for nth, document in enumerate(documents(root), 1):
            if nth % HOLD_OUT == 0:
                held_out.append(document)
                continue
            corpus.write(json.dumps(document, ensure_ascii=False) + "\n")
            known.update(sentence.lower() for sentence in sentences(document["text"]))
            n, size = n + 1, size + len(document["text"])
            chunks += max(1, round(len(document["text"]) / 900))
    asked = queries(held_out, known)
    (out / "queries.txt").write_text("".join(query + "\n" for query in asked), encoding="utf-8")
    print(f"{n} documents, {size} characters, about {chunks} chunks of 900; {len(asked)} queries from {len(held_out)} held out")
    if len(asked) < QUERIES:
        sys.exit(f"only {len(asked)} queries were found")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
