#!/bin/sh
# What cargo calls in the place of rustc, by `lockstead run --rust`: gives each crate that is compiled
# for this machine a standard library whose locks are seen, and compiles one of our own in the place
# of a crate whose locks are to be seen, around the real one. A wrapper that was there before is
# called as before.
for argument; do
    case $previous in
    --crate-name) crate=$argument ;;
    --crate-type) type=$argument ;;
    --out-dir) out=$argument ;;
    --target) target=$argument ;;
    esac
    case $argument in
    --crate-name=*) crate=${argument#*=} ;;
    --crate-type=*) type=${argument#*=} ;;
    --out-dir=*) out=${argument#*=} ;;
    --target=*) target=${argument#*=} ;;
    -Cextra-filename=* | extra-filename=*) extra=${argument#*=} ;;
    esac
    previous=$argument
done
rustc=$1
shift
if [ -z "$crate" ] || [ "${target:-$LOCKSTEAD_RUST_HOST}" != "$LOCKSTEAD_RUST_HOST" ]; then
    exec $LOCKSTEAD_RUST_BEFORE "$rustc" "$@"
fi
set -- "$@" --extern "std=$LOCKSTEAD_RUST/liblockstead_std.rlib" -L "dependency=$LOCKSTEAD_RUST"
case $type-$crate-$CARGO_PKG_NAME in
lib-parking_lot-parking_lot)
    case $CARGO_PKG_VERSION in
    0.11.* | 0.12.*) feature=lock_api_0_4 name=real_0_12 ;;
    *) feature=lock_api_0_5 name=real ;;
    esac
    ;;
*) exec $LOCKSTEAD_RUST_BEFORE "$rustc" "$@" ;;
esac

# The real crate has the same name, for those who read symbols, and another number: cargo hears
# nothing of it.
real=$out/lib$crate$extra-real
said=$out/$crate$extra-said
unseen=$LOCKSTEAD_RUST/unseen/$crate-$CARGO_PKG_VERSION
if ! $LOCKSTEAD_RUST_BEFORE "$rustc" "$@" \
    -C metadata=lockstead -C "extra-filename=$extra-real" 2>"$said"; then
    rm -f "$said"
    exec $LOCKSTEAD_RUST_BEFORE "$rustc" "$@"
fi
[ -e "$real.rlib" ] && real=$real.rlib || real=$real.rmeta

# Ours takes the place of its source, with all that cargo has asked for.
ours() (
    left=$#
    while [ $left -gt 0 ]; do
        argument=$1
        shift
        case $argument in
        *.rs) argument=$LOCKSTEAD_RUST/src/$crate/lib.rs ;;
        --edition=*) argument=--edition=2024 ;;
        esac
        set -- "$@" "$argument"
        left=$((left - 1))
    done
    $LOCKSTEAD_RUST_BEFORE "$rustc" "$@" --cfg "feature=\"$feature\"" --cap-lints allow \
        --extern "$name=$real" --extern "lockstead_told=$LOCKSTEAD_RUST/liblockstead_told.rlib"
)
if ours "$@" 2>"$said"; then
    cat "$said" >&2
    rm -f "$said" "$unseen"
    exit 0
fi

# No build fails for our sake.
why=$(sed -n 's/^{[^{]*"message":"\([^"]*\)".*/\1/p' "$said" | head -n 1)
rm -f "$said"
mkdir -p "${unseen%/*}"
echo "$crate $CARGO_PKG_VERSION is built as it is, for ours does not fit: ${why:-it ended}" >"$unseen"
sed 's/^/lockstead: not seen: /' "$unseen" >&2
exec $LOCKSTEAD_RUST_BEFORE "$rustc" "$@"
