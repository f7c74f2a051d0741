"""Cuts the pages of manuals into sections, for relevance.py: without navigation, each section once, with the headings above it."""

import hashlib
import html.parser
import re

import corpus

SHORTEST, LONGEST = 400, 6000  # characters of a document
WHOLE = 4000  # a section with all its subsections is one document up to this length

SKIPPED = set(
    """autosummary breadcrumbs contents copiable-anchor footer gallery_image header headerlink index legalnotice listing_lines local menu nav
    navfooter navheader navigation navsetbottom navsettop next_page nosearch outofdate prev-next-area prev-next-bottom previous_page RBackgroundLabel
    related rst-footer-buttons shortcontents sidebar sphinxsidebar sphx-glr-download sphx-glr-download-link-note sphx-glr-footer
    sphx-glr-thumbcontainer sphx-glr-timing title-anchors toc tocset toctree-wrapper top topbar toplang up versionbox viewcode-link
    visually-hidden""".split()
)
SKIPPED_IDS = set("footer ft hd nav_flow page-header path quickview sidebar toc".split())
SKIPPED_ROLES = set("banner complementary contentinfo navigation search".split())
CLOSED = set("a div h1 nav ol section span table td ul".split())  # elements that always have an end tag
BLOCKS, SILENT, HEADINGS = corpus.BLOCKS - {"td", "th"}, corpus.SILENT - {"head"}, set("h1 h2 h3 h4 h5 h6".split())
CODE_CLASSES = set("RktBlk RBoxed synopsis verbatim".split())


class Outline(html.parser.HTMLParser):
    """Reads a page as a list of blocks: (kind, text), kind being a level from 1 to 6 for headings, or p, dt, code, name."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks, self.line, self.title = [], [], []
        self.within = {}  # what is open: kind -> [tag, depth]
        self.has_main = False

    def handle_starttag(self, tag, attrs):
        for state in self.within.values():
            state[1] += state[0] == tag
        if "skip" in self.within:
            return
        attrs = dict(attrs)
        classes = set((attrs.get("class") or "").split())
        if tag == "title":
            self.within["title"] = [tag, 1]
        elif tag in SILENT or tag in CLOSED and (
            classes & SKIPPED or attrs.get("id") in SKIPPED_IDS or attrs.get("role") in SKIPPED_ROLES
        ):
            self.end_block()
            self.within["skip"] = [tag, 1]
            return
        elif attrs.get("id") == "header" and tag == "h1":
            self.within["skip"] = [tag, 1]
            return
        if attrs.get("role") == "main":
            self.blocks, self.line, self.has_main = [], [], True
            self.within["main"] = [tag, 1]
        if tag in HEADINGS:
            self.end_block()
            self.within.setdefault("heading", [tag, 1])
        elif tag in BLOCKS and "heading" not in self.within:
            self.end_block()
            if tag == "pre" and "text" not in classes or classes & CODE_CLASSES:
                self.within.setdefault("code", [tag, 1])
            elif tag == "pre":
                self.within.setdefault("lines", [tag, 1])
            elif tag == "dt":
                self.within["code" if "sig" in classes else "dt"] = [tag, 1]
            elif "refnamediv" in classes or "module-summary-body" in classes:
                self.within["name"] = [tag, 1]
        elif tag in ("td", "th"):
            self.line.append(" ")

    def handle_endtag(self, tag):
        ended = []
        for kind, state in self.within.items():
            state[1] -= state[0] == tag
            if state[1] == 0:
                ended.append(kind)
        if "skip" not in self.within and (tag in BLOCKS and "heading" not in self.within or "heading" in ended):
            self.end_block()
        for kind in ended:
            del self.within[kind]

    def handle_data(self, data):
        if "title" in self.within:
            self.title.append(data)
        elif "skip" not in self.within and (not self.has_main or "main" in self.within):
            self.line.append(data)

    def end_block(self):
        text = "".join(self.line).replace("\u00b6", "").replace("\u00a0", " ").replace("\u00ad", "").replace("\u200b", "")
        self.line = []
        if "heading" in self.within:
            kind, text = int(self.within["heading"][0][1]), unnumbered(" ".join(text.split()))
            if re.fullmatch(r"(?i)(note|tip|hint|warning|caution|important)s?:?", text) and kind > 2:
                kind = "p"  # a box in the text
        elif "code" in self.within:
            kind, text = "code", text.strip("\n").rstrip()
        else:
            kind = next((kind for kind in ("name", "dt") if kind in self.within), "p")
            if "lines" in self.within:
                self.blocks += paragraphs(text)
                return
            text = " ".join(text.split())
        self.add(kind, text)

    def add(self, kind, text):
        if text.strip():
            self.blocks.append((kind, text))


def paragraphs(text):
    """The blocks of plain text; one with indented lines keeps its layout."""
    for part in re.split(r"\n[ \t]*\n", text):
        if part.strip() and re.search(r"^\s{2}", part, re.MULTILINE):
            yield ("code" if re.match(r"\n?\s{4}", part) else "p"), part.strip("\n").rstrip()
        elif part.strip():
            yield "p", " ".join(part.split())


NUMBER = re.compile(
    r"(?i)^((chapter|appendix|part|section)\s+)?(\d+(\.\d+)*[.)]?|\d+[a-z][.)]|[A-Z](\.\d+)+\.?|\(?([A-Z]|[IVX]+)[.)])\s*[-–—:]?\s+"
)


def unnumbered(heading):
    return NUMBER.sub("", heading)


class Section:
    def __init__(self, level, heading):
        self.level, self.heading, self.blocks, self.parts = level, heading, [], []

    def size(self):
        return sum(len(text) + 2 for _, text in self.blocks) + sum(part.size() + len(part.heading) for part in self.parts)

    def flat(self):
        """Its blocks and those of its subsections, whose headings are kept."""
        return self.blocks + [b for part in self.parts for b in [("h", part.heading)] + part.flat()]


def tree(blocks):
    top = Section(0, "")
    path = [top]
    for kind, text in blocks:
        if not isinstance(kind, int):
            path[-1].blocks.append(("name" if path[-1].heading.upper() == "NAME" else kind, text))
            continue
        while path[-1].level >= kind:
            path.pop()
        path[-1].parts.append(Section(kind, text))
        path.append(path[-1].parts[-1])
    # A page often has one heading above everything else, which is its title once more.
    while len(top.parts) == 1 and not top.blocks:
        only = top.parts[0]
        top = Section(0, only.heading)
        top.blocks, top.parts = only.blocks, only.parts
    return top


class Unit:
    """A section that is or may become a document."""

    def __init__(self, page, parents, section, whole):
        self.page, self.parents, self.heading, self.whole = page, parents, section.heading, whole
        self.blocks = section.flat() if whole else section.blocks
        self.gold = False
        page.units.append(self)

    def text(self):
        return "\n\n".join(text for _, text in self.blocks)

    def title(self):
        """The page's title and the headings above the section, each said once, without the section's own heading."""
        parts = []
        for part in [self.page.title] + self.parents:
            if not words(part) or said(part) in said(" ".join(parts)):
                continue
            parts = [known for known in parts if said(known) not in said(part)] + [part]
        return ": ".join(parts)


class Page:
    def __init__(self, package, name, title, top, is_html):
        self.package, self.name, self.title, self.is_html, self.units = package, name, title, is_html, []
        self.name_line = next((text for kind, text in top.flat() if kind == "name"), None)
        self.cut(top, [])

    def cut(self, section, parents):
        large = sum(part.size() >= SHORTEST for part in section.parts)
        if not section.parts or section.size() <= WHOLE and (section.level > 0 or large < 2):
            Unit(self, parents, section, True)
            return
        if section.blocks:
            Unit(self, parents, section, False)
        for part in section.parts:
            self.cut(part, parents + [section.heading])


# A manual once more: in one file, or its sources.
COPY = re.compile(
    r"/python-sqlalchemy-doc/rst/|/(debian-reference\.en\.txt\.gz|developers-reference\.(html|txt\.gz)|"
    r"(policy|perl-policy|upgrading-checklist)\.txt\.gz|perl-policy-1\.html|"
    r"sqlite3/(capi3ref|changes|session)\.html|ext4/(globals|dynamic|overview)\.html)$"
)


def read_pages(root, owners):
    seen, found = set(), []
    for path, name in corpus.pages(root):
        if COPY.search(name):
            continue
        text = corpus.read(path)
        is_html = re.search(r"\.x?html?(\.gz)?$", name) is not None
        if is_html:
            outline = Outline()
            outline.feed(text)
            outline.close()
            outline.end_block()
            title, blocks = " ".join("".join(outline.title).split()), outline.blocks
        else:
            blocks = list(paragraphs(text))
            title = next((line for line in (line.strip(" =-*#~^.") for line in text.splitlines()) if line), "")
        digest = hashlib.sha256("\n".join(text for _, text in blocks).encode()).digest()
        if blocks and digest not in seen:
            seen.add(digest)
            found.append(Page(owners[name], name, unnumbered(title) or path.name, tree(blocks), is_html))
    return found


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def said(text):
    """The text as its words only, to look for one text in another."""
    return f" {' '.join(words(text))} "
