#!/usr/bin/env bash
# Tests crates that use parking_lot with lockstead's locks in its place, by `[patch.crates-io]`.
#
#   drop-in/try.sh [--real] [NAME...]
#
# Without names: all of the list below. --real: the same tests with the real parking_lot, to
# compare. Needs the network (cargo fetches the crates), and takes half an hour on two processors.
# Work is kept in $DROP_IN_DIR, target/drop-in by default. Exits with 1 if a suite failed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=${DROP_IN_DIR:-$here/../target/drop-in}
jobs=${DROP_IN_JOBS:-2}

# name, version, and what `cargo test` is told. The other tests of tracing-subscriber need a crate that is
# not published, or the path that its sources have in their repository.
suites() {
    cat <<'END'
tokio 1.54.1 --features full,test-util --lib --test rt_basic --test rt_threaded --test rt_common --test sync_mutex --test sync_rwlock --test sync_notify --test sync_broadcast --test sync_watch --test sync_semaphore --test sync_barrier --test sync_once_cell --test task_blocking --test time_timeout
dashmap 5.1.0 --lib
prometheus 0.14.0 --lib
tracing-subscriber 0.3.23 --features parking_lot,env-filter,json --lib --test ansi_escaping --test duplicate_spans --test event_enabling --test fmt_max_level_hint --test option --test registry_max_level_hint --test registry_span_instrument_drop --test registry_with_subscriber --test reload --test vec -- --skip filename --skip file_name
r2d2 0.8.10 --lib
moka 0.12.16 --features sync,future --lib
string_cache 0.11.0 --lib --tests
END
}

# Prints the older version that a suite takes of a dependency, because newer ones use parking_lot 0.13,
# in the place of which this package does not come.
pin() {
    case $1 in
    r2d2) echo "scheduled-thread-pool 0.2.7" ;;
    esac
}

with=lockstead
if [ "${1:-}" = --real ]; then
    with=real
    shift
fi

# Leaves a copy of the published source of crate $1, version $2, in $3.
fetch() {
    [ -f "$3/Cargo.toml" ] && return
    local list=$work/fetch/of-$1-$2
    mkdir -p "$list/src"
    : >"$list/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n%s = "=%s"\n' \
        "$1" "$2" >"$list/Cargo.toml"
    local manifest
    manifest=$(cd "$list" && cargo metadata --format-version 1 |
        grep -o "\"manifest_path\":\"[^\"]*/$1-$2/Cargo.toml\"" | head -n 1 | cut -d '"' -f 4)
    mkdir -p "$3"
    cp -R "$(dirname "$manifest")/." "$3"
    chmod -R u+w "$3"
    # The toolchain that a crate was written with is not ours.
    rm -f "$3/rust-toolchain" "$3/rust-toolchain.toml"
    cp "$3/Cargo.toml" "$3/Cargo.toml.published"
}

status=0
wanted=" $* "
while read -r name version flags; do
    [ $# -gt 0 ] && [[ $wanted != *" $name "* ]] && continue
    copy=$work/$name-$version
    log=$work/$name-$version.$with.log
    fetch "$name" "$version" "$copy"
    {
        cat "$copy/Cargo.toml.published"
        # A dependency of the tests may use the crate itself.
        grep -q '^\[workspace\]' "$copy/Cargo.toml.published" || printf '\n[workspace]\n'
        printf '\n[patch.crates-io]\n%s = { path = "." }\n' "$name"
        [ $with = lockstead ] && printf 'parking_lot = { path = "%s/parking_lot" }\n' "$here"
        true
    } >"$copy/Cargo.toml"
    read -r dependency older <<<"$(pin "$name")"
    [ -z "$dependency" ] || (cd "$copy" && cargo update -q "$dependency" --precise "$older")
    # A lock file may name a version that the patch does not have.
    [ $with = lockstead ] && (cd "$copy" && cargo update -q parking_lot) >/dev/null 2>&1 || true
    result=ok
    # shellcheck disable=SC2086 # the flags are words
    (cd "$copy" && CARGO_TARGET_DIR=$work/build timeout "${DROP_IN_LIMIT:-3000}" \
        cargo test -j "$jobs" --no-fail-fast $flags) >"$log" 2>&1 </dev/null || result=failed
    # cargo only warns of a patch that it does not use, and several versions are an error here. What is in
    # use depends on the features.
    if [ $with = lockstead ]; then
        features=()
        [[ $flags == *"--features "* ]] && features=(--features "$(sed 's/.*--features \([^ ]*\).*/\1/' <<<"$flags")")
        tree=$(cd "$copy" && cargo tree -e normal "${features[@]}" -i parking_lot 2>/dev/null || true)
        [[ $tree == parking_lot*drop-in/parking_lot* ]] || result="not patched"
    fi
    awk -v name="$name $version" -v with=$with -v result="$result" '
        /^test result:/ { passed += $4; failed += $6; ignored += $8 }
        END { printf "%-28s %-10s %5d passed %3d failed %3d ignored  %s\n", name, with, passed, failed, ignored, result }
    ' "$log"
    grep '^test .* FAILED$' "$log" | sed 's/^/    /' || true
    [ "$result" = ok ] || { status=1; echo "    see $log"; }
done < <(suites)
exit $status
