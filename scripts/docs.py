#!/usr/bin/env python3
"""Checks the documents: line lengths, links and paths, and that docs/fault-codes.md explains the codes that the tests use.

Prints one line per finding; exit code 1 if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEY = "docs/fault-codes.md"
LONGEST = 200  # characters; a longer line has to be scrolled
NO_CODES = {"blobs.rs", "fast.rs"}  # these speak of S3, the object store, and of F16, a number format


def check_documents():
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        name, text = path.relative_to(ROOT), path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LONGEST:
                yield f"{name}:{number}: the line has {len(line)} characters: wrap it at about 120"
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in link and not path.parent.joinpath(link).exists():
                yield f"{name}: the link to {link} leads nowhere"
        for place in re.findall(r"`((?:crates|deploy|docs|fixtures|functions|migrations|scripts)/[\w./-]*)`", text):
            if not (ROOT / place).exists():
                yield f"{name}: there is no {place}"


def check_fault_codes():
    key = (ROOT / KEY).read_text()
    explained = set(re.findall(r"^\*\*([FSI][0-9]{1,2}):", key, re.M))
    used, functions = {}, set()
    for path in ROOT.glob("crates/**/*.rs"):
        text = path.read_text()
        functions.update(re.findall(r"\bfn (\w+)", text))
        if path.name not in NO_CODES:
            used.update((code, path.relative_to(ROOT)) for code in re.findall(r"\b[FSI][0-9]{1,2}\b", text))
    for code in sorted(used.keys() - explained):
        yield f"{used[code]}: {code} is not explained in {KEY}"
    for code in sorted(explained - used.keys()):
        yield f"{KEY}: no test uses {code}: remove it"
    for function in sorted(set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`", key)) - functions):
        yield f"{KEY}: there is no test {function}"


if __name__ == "__main__":
    findings = [*check_documents(), *check_fault_codes()]
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(bool(findings))
