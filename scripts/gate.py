#!/usr/bin/env python3
"""Checks our dependencies: licences, origin, known vulnerabilities, duplicate and unused crates.

  gate.py                         check; prints one line per finding, exit code 1 if there is one
  gate.py --self-test             plant one violation of each kind and check that it is found
  gate.py --refresh DATABASE      rewrite advisories.json from a checkout of the RustSec advisory database

If ADVISORY_DB is such a checkout, all of its advisories count, not only those in advisories.json.
Needs only Python 3.9 and cargo: no TOML parser, and no network once cargo has fetched the crates.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
ADVISORIES = ROOT / "scripts" / "advisories.json"

# Licences that may ship inside an Apache-2.0 program with no duty but attribution. MPL-2.0 covers only its own files.
ALLOWED_LICENCES = {
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "PostgreSQL",
    "Unicode-3.0",
    "Zlib",
}

# A second major version of one of these costs minutes of compiling, and its types look the same but are incompatible.
ONE_MAJOR_ONLY = ["axum", "hyper", "reqwest", "rustls", "sqlx", "tokio"]


@dataclass
class Tree:
    """The input of all checks. The self-test changes copies of it."""

    metadata: dict  # of `cargo metadata`
    checksums: dict  # (name, version) -> checksum in Cargo.lock
    advisories: list  # of dicts: id, package, patched, unaffected, why, and accepted if we tolerate it
    code: dict  # path below the root -> text without line comments, of all *.rs and *.html

    def members(self):
        return [p for p in self.metadata["packages"] if p["id"] in self.metadata["workspace_members"]]

    def dependencies(self):
        return [p for p in self.metadata["packages"] if p["id"] not in self.metadata["workspace_members"]]

    def home(self, member):
        return pathlib.Path(member["manifest_path"]).parent.relative_to(self.metadata["workspace_root"]).as_posix()


def main(args):
    if args == ["--self-test"]:
        return self_test(load_tree())
    if len(args) == 2 and args[0] == "--refresh":
        return refresh(load_tree(), pathlib.Path(args[1]))
    if args:
        sys.exit(__doc__)
    return report(check(load_tree()))


def report(findings):
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


def check(tree):
    return sorted(finding for one in CHECKS.values() for finding in one(tree))


# ---------------------------------------------------------------------------------------------------------- the checks


def check_licences(tree):
    for package in tree.dependencies():
        licence = package["license"]
        if not licence:
            yield f"licence: {label(package)} names none: replace it"
        elif not is_allowed(licence):
            yield f"licence: {label(package)} is under {licence}: replace it, or allow that licence in scripts/gate.py"


def check_origin(tree):
    """A crate from a registry with a checksum cannot change; a folder or a branch can."""
    sources = {}
    for package in tree.dependencies():
        source = package["source"] or "a folder outside the workspace"
        if not source.startswith(("registry+", "sparse+")):
            yield f"origin: {label(package)} comes from {source}: use a published version"
            continue
        sources.setdefault(source, package)
        if (package["name"], package["version"]) not in tree.checksums:
            yield f"origin: {label(package)} has no checksum in Cargo.lock: run `cargo update -p {package['name']}`"
    for source, package in sorted(sources.items())[1:]:
        yield f"origin: {label(package)} comes from a second registry, {source}: use one"


def check_advisories(tree):
    versions = {}
    for package in tree.dependencies():
        versions.setdefault(package["name"], []).append(package["version"])
    accepted = {a["id"] for a in tree.advisories if a.get("accepted")}
    seen = set()
    for advisory in tree.advisories:
        for version in versions.get(advisory["package"], []):
            key = (advisory["id"], version)
            if key in seen or advisory["id"] in accepted or not is_affected(version, advisory):
                continue
            seen.add(key)
            fixed = " or ".join(advisory["patched"]) or "no version yet"
            yield f"advisory: {advisory['package']} {version}: {advisory['why']} ({advisory['id']}): fixed in {fixed}"


def check_majors(tree):
    for name in ONE_MAJOR_ONLY:
        found = {p["version"] for p in tree.dependencies() if p["name"] == name}
        if len({major(version) for version in found}) > 1:
            listed = " and ".join(sorted(found))
            yield f"majors: {name} is in the tree as {listed}: see `cargo tree -i {name}` and keep one"


def check_unused(tree):
    """A crate must use each dependency that it declares. For one needed only for its features: `use name as _;` and a reason."""
    nodes = {node["id"]: node for node in tree.metadata["resolve"]["nodes"]}
    folders = {None: ["src"], "dev": ["src", "tests", "it", "benches", "examples"], "build": ["build.rs"]}
    for package in tree.members():
        home = tree.home(package)
        for dependency in nodes[package["id"]]["deps"]:
            name = dependency["name"]
            use = re.compile(rf"(?<![\w:])(?:::)?{name}\s*::|\b(?:use|extern crate)\s+(?:::)?{name}\b")
            for kind in {k["kind"] for k in dependency["dep_kinds"]}:
                places = tuple(f"{home}/{folder}" for folder in folders[kind])
                if not any(use.search(text) for path, text in tree.code.items() if path.startswith(places)):
                    section = f"{kind}-dependencies" if kind else "dependencies"
                    yield f"unused: {home}/Cargo.toml lists {name} in [{section}] but no code names it: remove it"


# By the word that their findings begin with.
CHECKS = {
    "licence": check_licences,
    "origin": check_origin,
    "advisory": check_advisories,
    "majors": check_majors,
    "unused": check_unused,
}


# ---------------------------------------------------------------------------------------------- licences and versions


def label(package):
    return f"{package['name']} {package['version']}"


def is_allowed(expression):
    """Whether a licence expression (with OR, AND, WITH, brackets, and the old slash for OR) can be met."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def alternatives():
        met = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = both() or met
        return met

    def both():
        met = single()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = single() and met
        return met

    def single():
        licence = tokens.pop(0)
        if licence == "(":
            met = alternatives()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":
            licence = f"{licence} WITH {tokens[1]}"
            del tokens[:2]
        return licence in ALLOWED_LICENCES

    try:
        return alternatives() and not tokens
    except IndexError:  # incomplete: an expression that we cannot read is not allowed
        return False


def is_affected(version, advisory):
    return not any(matches(version, wanted) for wanted in advisory["patched"] + advisory.get("unaffected", []))


def matches(version, requirement):
    """Whether a version meets a requirement in Cargo's notation, such as `>= 1.2.3, < 2`."""
    return all(matches_one(order(version), one.strip()) for one in requirement.split(","))


def matches_one(version, comparator):
    if comparator == "*":
        return True
    operator, text = re.fullmatch(r"(>=|<=|<|>|=|\^|~)?\s*(\d\S*)", comparator).groups()
    given = len(re.match(r"[\d.]+", text)[0].split("."))  # two numbers in `1.2`
    low = order(text)

    def after(count):  # the first version that differs in the first `count` numbers
        numbers = list(low[0])
        return ((*numbers[: count - 1], numbers[count - 1] + 1, *[0] * (3 - count)), low[1][:0])

    def within(count):
        return low <= version < after(count)

    if operator == ">=":
        return version >= low
    if operator == "<":
        return version < low
    if operator == ">":
        return version > low if given == 3 else version >= after(given)
    if operator == "<=":
        return version <= low if given == 3 else version < after(given)
    if operator == "=":
        return version == low if given == 3 else within(given)
    if operator == "~":
        return within(min(given, 2))
    leading_zeros = next((i for i, number in enumerate(low[0][:given]) if number), given - 1)
    return within(leading_zeros + 1)


def order(version):
    """A key that sorts versions as semver does: 1.0.0-alpha.2 < 1.0.0-alpha.10 < 1.0.0."""
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = [int(number) for number in core.split(".")]
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".") if part]
    return tuple(numbers + [0] * (3 - len(numbers))), (*parts, (0, -1, "")) if parts else ((2, 0, ""),)


def major(version):
    """The part that two compatible versions share: 1 of 1.2.3, 0.2 of 0.2.3."""
    numbers = version.split(".")
    return numbers[0] if numbers[0] != "0" else f"0.{numbers[1]}"


# ------------------------------------------------------------------------------------------------- reading and writing


def load_tree():
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    if run.returncode:
        sys.exit("gate: cargo metadata failed: see its message above, and commit Cargo.lock with Cargo.toml")
    advisories = json.loads(ADVISORIES.read_text())
    if os.environ.get("ADVISORY_DB"):
        advisories += read_database(pathlib.Path(os.environ["ADVISORY_DB"]))
    return Tree(json.loads(run.stdout), read_checksums(), advisories, read_code())


def read_checksums():
    blocks = (ROOT / "Cargo.lock").read_text().split("[[package]]")[1:]
    entries = (dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M)) for block in blocks)
    return {(e["name"], e["version"]): e["checksum"] for e in entries if "checksum" in e}


def read_code():
    files = (path for ending in ("rs", "html") for path in (ROOT / "crates").rglob(f"*.{ending}"))
    return {path.relative_to(ROOT).as_posix(): re.sub(r"//.*", "", path.read_text()) for path in files}


def read_database(database):
    """Reads advisories on vulnerable and unsound crates. Unmaintained crates and withdrawn advisories do not stop a build."""
    files = sorted(database.glob("crates/*/RUSTSEC-*.md"))
    if not files:
        sys.exit(f"gate: {database} is no advisory database: it has no crates/*/RUSTSEC-*.md")
    advisories = []
    for file in files:
        _, head, body = re.split(r"^```(?:toml)?$", file.read_text(), maxsplit=2, flags=re.M)
        head = re.sub(r"^\s*#.*", "", head, flags=re.M)
        fields = dict(re.findall(r'^(\w+)\s*=\s*"(.*)"', head, re.M))
        lists = dict(re.findall(r"^(patched|unaffected)\s*=\s*\[(.*?)\]", head, re.M | re.S))
        if "withdrawn" in fields or fields.get("informational") in ("unmaintained", "notice"):
            continue
        ranges = {key: re.findall(r'"([^"]*)"', lists.get(key, "")) for key in ("patched", "unaffected")}
        why = re.search(r"^# *(.*)", body, re.M)[1].strip()
        advisories.append({"id": fields["id"], "package": fields["package"], **ranges, "why": why})
    return advisories


def refresh(tree, database):
    """Keeps the advisories on crates in our tree and on those that are already in the list."""
    old = json.loads(ADVISORIES.read_text())
    accepted = {a["id"]: a["accepted"] for a in old if a.get("accepted")}
    watched = {a["package"] for a in old} | {p["name"] for p in tree.dependencies()}
    new = [a for a in read_database(database) if a["package"] in watched]
    for advisory in new:
        if advisory["id"] in accepted:
            advisory["accepted"] = accepted[advisory["id"]]
    new.sort(key=lambda a: (a["package"], a["id"]))
    lines = (json.dumps({k: v for k, v in a.items() if v or k == "patched"}, ensure_ascii=False) for a in new)
    ADVISORIES.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(new)} advisories written to {ADVISORIES.relative_to(ROOT)}", file=sys.stderr)
    return 0


# ----------------------------------------------------------------------------------------------------------- self-test


# S34: each kind of violation is planted in a copy of the tree, and must be found.
def self_test(tree):
    """Shows that each check can fail: changes a copy of the real tree and expects the matching finding."""
    failures = []
    before = check(tree)

    def plant(expected, change):
        broken = copy.deepcopy(tree)
        change(broken, broken.dependencies()[0])
        matching = CHECKS[expected.partition(":")[0]]  # all of them, for each planted fault, would take half a minute
        if not any(finding.startswith(expected) for finding in matching(broken) if finding not in before):
            failures.append(f"self-test: planted, but not reported: {expected}")

    def set_field(field, value):
        return lambda broken, package: package.__setitem__(field, value)

    def add_package(name, *versions):
        def change(broken, package):
            for version in versions:
                planted = {**package, "id": f"planted {name} {version}", "name": name, "version": version}
                broken.metadata["packages"].append(planted)

        return change

    def add_unused(kind):
        def change(broken, package):
            member = broken.members()[0]["id"]
            node = next(n for n in broken.metadata["resolve"]["nodes"] if n["id"] == member)
            node["deps"].append({"name": "planted", "pkg": package["id"], "dep_kinds": [{"kind": kind, "target": None}]})
            for path in broken.code:  # a function or a module of that name is not a use
                broken.code[path] += "\nfn planted() {} use crate::planted::thing;\n"

        return change

    first = label(tree.dependencies()[0])
    plant(f"licence: {first} names none", set_field("license", None))
    plant(f"licence: {first} is under GPL-3.0-only", set_field("license", "GPL-3.0-only"))
    plant(f"origin: {first} comes from git+", set_field("source", "git+ssh://example.test/x"))
    plant(f"origin: {first} comes from a folder", set_field("source", None))
    plant("origin: ", set_field("source", "registry+ssh://example.test/index"))
    plant(f"origin: {first} has no checksum", lambda broken, p: broken.checksums.pop((p["name"], p["version"])))
    plant("advisory: sqlx 0.8.0:", add_package("sqlx", "0.8.0"))
    for name in ONE_MAJOR_ONLY:
        plant(f"majors: {name} ", add_package(name, "0.1.0", "0.2.0"))
    home = f"unused: {tree.home(tree.members()[0])}/Cargo.toml lists planted"
    plant(f"{home} in [dependencies]", add_unused(None))
    plant(f"{home} in [dev-dependencies]", add_unused("dev"))

    expressions = {
        "MIT": True,
        "MIT/GPL-3.0": True,
        "GPL-3.0 OR (MIT AND ISC)": True,
        "Apache-2.0 WITH LLVM-exception": True,
        "GPL-3.0": False,
        "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND AGPL-3.0": False,
        "Apache-2.0 WITH Planted-exception": False,
        "MIT AND": False,
        "MIT Planted": False,
    }
    for expression, wanted in expressions.items():
        if is_allowed(expression) is not wanted:
            failures.append(f"self-test: licence {expression!r} should be {'allowed' if wanted else 'refused'}")

    requirements = [
        ("0.8.0", ">= 0.8.1", False),
        ("0.8.10", ">= 0.8.9", True),
        ("0.3.24", "^0.3.24", True),
        ("0.4.1", "^0.3.24", False),
        ("1.9.0", "1.2", True),
        ("2.0.0", "1.2", False),
        ("0.22.5", ">= 0.22.4, < 0.23.0", True),
        ("0.23.1", ">= 0.22.4, < 0.23.0", False),
        ("1.2.9", "~1.2.3", True),
        ("1.3.0", "~1.2.3", False),
        ("0.3.1", "> 0.3", False),
        ("0.2.0", "=0.2.0", True),
        ("1.0.0-rc.2", ">= 1.0.0-rc.10", False),
        ("1.0.0", ">= 1.0.0-rc.10", True),
        ("1.0.0-rc.1", ">= 1.0.0", False),
    ]
    for version, requirement, wanted in requirements:
        if matches(version, requirement) is not wanted:
            failures.append(f"self-test: {version} should {'' if wanted else 'not '}match {requirement!r}")

    return report(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
