#!/usr/bin/env bash
# The steps of action.yml, one at a time. The runner says where things lie: GITHUB_ACTION_PATH, the root
# of the repository; RUNNER_TEMP, where the command is installed; GITHUB_OUTPUT, the file for what a step tells.
set -euo pipefail
root=$RUNNER_TEMP/lockstead

tell() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

case ${1-} in
key)
    # What the command is built of: another one has another key.
    cd "$GITHUB_ACTION_PATH"
    files=$(find Cargo.toml Cargo.lock crates -type f -not -path '*/target/*' | LC_ALL=C sort)
    tell key "$(xargs -d '\n' sha256sum <<<"$files" | sha256sum | cut -c 1-32)"
    ;;
install)
    cargo install --locked --path "$GITHUB_ACTION_PATH/crates/cli" --root "$root"
    ;;
run)
    status=0
    # The options are words: they are split as the shell splits them.
    # shellcheck disable=SC2086
    "$root/bin/lockstead" run ${LOCKSTEAD_OPTIONS-} --sarif "$LOCKSTEAD_SARIF" -- \
        bash -e -o pipefail -c "$LOCKSTEAD_COMMAND" || status=$?
    tell status "$status"
    if [ -s "$LOCKSTEAD_SARIF" ]; then
        tell sarif "$LOCKSTEAD_SARIF"
    fi
    exit "$status"
    ;;
*)
    echo "usage: action.sh key|install|run" >&2
    exit 2
    ;;
esac
