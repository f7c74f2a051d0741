#!/usr/bin/env bash
# Makes the corpora of `tributary bench search` and `tributary bench relevance` from the manuals in pinned Debian packages,
# which are unpacked and never installed. Prints their folder:
#   corpus.jsonl     one document a line: {"id": …, "title": …, "text": …}
#   queries.txt      1,000 sentences from documents that are not in the corpus
#   relevance.jsonl  sections of the same manuals: {"id": …, "title": …, "text": …, "package": …, "gold": …}
#   questions.jsonl  questions and the document that answers each; scripts/relevance.py describes them
# They are made once. The same packages give the same files.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
folder=$cache/corpus-2 # another number when the files change, so that every machine makes them anew

# The folder is renamed into place once it is complete, so its existence means that this step is done.
make_corpus() {
    local tmp=$folder.tmp name version sha256 line packages=()
    [ ! -d "$folder" ] || return 0 # another run was faster
    rm -rf "$tmp"
    mkdir -p "$tmp/debs" "$tmp/root"
    while read -r name version sha256; do
        packages+=("$name=$version")
    done < <(pinned)
    say "fetching ${#packages[@]} packages of manuals into $cache (250 MB, once)"
    fetch_debs "$tmp" "${packages[@]}" || {
        timeout 120 apt-get update >"$tmp/apt.log" 2>&1 || true # the package lists may be out of date
        fetch_debs "$tmp" "${packages[@]}" || {
            tail -n 5 "$tmp/apt.log" >&2
            die "the packages of scripts/corpus.lock could not be fetched: this needs apt-get with the sources of Debian 12"
        }
    }
    while read -r name version sha256; do
        line=$(cd "$tmp/debs" && sha256sum "${name}_"*.deb)
        [ "${line%% *}" = "$sha256" ] || die "$name is not the package that scripts/corpus.lock pins"
        dpkg-deb -x "$tmp/debs/${name}_"*.deb "$tmp/root"
        dpkg-deb --fsys-tarfile "$tmp/debs/${name}_"*.deb | tar -t --quoting-style=literal | sed -n "s|^\./\(.*[^/]\)\$|$name \1|p"
    done < <(pinned) >"$tmp/owners"
    say "turning them into text and questions (ten minutes)"
    python3 "$root/scripts/corpus.py" "$tmp/root" "$tmp" >&2 || die "the manuals could not be turned into text"
    python3 "$root/scripts/relevance.py" "$tmp/root" "$tmp/owners" "$tmp" >&2 || die "no questions could be made of the manuals"
    rm -rf "$tmp/debs" "$tmp/root" "$tmp/owners" "$tmp/apt.log"
    mv "$tmp" "$folder"
}

pinned() { grep -v '^#' "$root/scripts/corpus.lock"; }

fetch_debs() {
    local tmp=$1
    shift
    (cd "$tmp/debs" && timeout 900 apt-get download "$@" >"$tmp/apt.log" 2>&1)
}

need_tools python3
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "the corpus is made of Debian packages: run this where apt-get and dpkg-deb are"
[ -d "$folder" ] || lock=corpus locked make_corpus # minutes, for which no other set-up waits
printf '%s\n' "$folder"
