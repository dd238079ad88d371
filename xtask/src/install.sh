#!/bin/sh
# Puts lockstead below a prefix, or takes it away again.
set -eu

usage() {
    cat <<'USAGE'
usage: ./install.sh [--prefix DIR] [--uninstall]

Copies bin/, include/, lib/ and share/, which lie beside this script, below DIR: /usr/local for
root, else ~/.local. --uninstall removes those files.
USAGE
}

if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix=*) prefix=${1#--prefix=} ;;
        --prefix) [ $# -gt 1 ] || { echo "install.sh: --prefix wants a folder" >&2; exit 2; }
            prefix=$2; shift ;;
        --uninstall) uninstall=1 ;;
        -h|--help) usage; exit 0 ;;
        *) echo "install.sh: $1 means nothing" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

cd "$(dirname "$0")"
# The loader finds libraries of some folders, as /usr/local/lib, by a cache.
renew_cache() {
    if [ "$(id -u)" = 0 ]; then PATH=$PATH:/usr/sbin:/sbin ldconfig 2>/dev/null || true; fi
}
all() { find bin include lib share -type f -o -type l; }
if [ -n "$uninstall" ]; then
    all | while IFS= read -r file; do rm -f "$prefix/$file"; done
    find lib share -type d -name 'lockstead*' | while IFS= read -r folder; do
        rmdir "$prefix/$folder" 2>/dev/null || true
    done
    renew_cache
    echo "removed lockstead from $prefix"
    exit 0
fi

mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || {
    echo "install.sh: cannot write to $prefix: name another folder with --prefix, or use sudo" >&2
    exit 1
}
all | while IFS= read -r file; do
    mkdir -p "$prefix/${file%/*}"
    # Beside the old one and then in its place: a program that runs cannot be written to.
    cp -P "$file" "$prefix/$file.new"
    mv -f "$prefix/$file.new" "$prefix/$file"
done
renew_cache
"$prefix/bin/lockstead" --version
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
