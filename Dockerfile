# The command in an image. docs/containers.md says how it looks at processes of the host and of other
# containers.
#
#   docker build -t lockstead .
#   docker run --rm --pid=host --cap-add=SYS_PTRACE lockstead dump PID

FROM rust:1.95-slim-bookworm AS build
WORKDIR /lockstead
COPY . .
RUN cargo build --release --locked --bins \
    --package lockstead-cli --package lockstead-bench --package lockstead-cluster

# glibc, which the command is linked with, and the compiler's libgcc_s, which the other two are.
FROM debian:bookworm-slim
COPY --from=build /lockstead/target/release/lockstead /lockstead/target/release/lockstead-bench \
    /lockstead/target/release/lockstead-cluster /usr/local/bin/
COPY --from=build /lockstead/LICENSE-MIT /lockstead/LICENSE-APACHE /usr/local/share/doc/lockstead/
ENTRYPOINT ["lockstead"]
CMD ["--help"]
