#!/usr/bin/env bash
# Makes the folder that LOCKSTEAD_MACHINE names for the tests that want a kernel with the time-slice extension:
# Linux of Debian's unstable suite, built small and with it, and that suite's glibc. Takes Debian or a
# relative of it with its archive's keys, the address of a mirror of Debian (the machine's own are in
# /etc/apt/sources.list or sources.list.d), 3 GB in the folder for some minutes, and what builds a kernel
# (gcc make flex bison bc libelf-dev).
set -euo pipefail

if [ $# != 2 ]; then
    echo "usage: make.sh FOLDER MIRROR" >&2
    exit 2
fi
mirror=$2
folder=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$folder/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Lists and packages of its own: the machine's are left alone.
mkdir -p "$work"/apt/etc/apt/{sources.list.d,preferences.d,apt.conf.d} \
    "$work"/apt/var/{lib/apt/lists/partial,cache/apt/archives/partial,lib/dpkg}
touch "$work/apt/var/lib/dpkg/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $mirror sid main" >"$work/apt/etc/apt/sources.list"
apt() {
    "$@" -o Dir="$work/apt" -o Dir::State::status="$work/apt/var/lib/dpkg/status" \
        -o APT::Architecture=amd64 -o APT::Sandbox::User=root
}
apt apt-get -q update
source=$(apt apt-cache depends linux-source | sed -n 's/.*Depends: \(linux-source-.*\)/\1/p')
(cd "$work" && apt apt-get -q download "$source" libc6 libgcc-s1)
for package in "$work"/*.deb; do
    dpkg -x "$package" "$work/packages"
done

mkdir -p "$folder/lib" "$work/kernel"
for library in ld-linux-x86-64.so.2 libc.so.6 libgcc_s.so.1; do
    cp -L "$(find "$work/packages" -name "$library" -path '*x86_64*' | head -n 1)" "$folder/lib/$library"
done

tar -xJf "$work/packages/usr/src/$source.tar.xz" -C "$work/kernel" --strip-components=1
cd "$work/kernel"
make -s tinyconfig
scripts/kconfig/merge_config.sh -m .config "$here/kernel.config" >/dev/null
make -s olddefconfig
# An option that the kernel does not know by this name any more would be left out in silence.
while read -r option; do
    grep -qx "$option" .config || { echo "not in this kernel: $option" >&2; exit 1; }
done < <(grep '^CONFIG' "$here/kernel.config")
make -s -j"$(nproc)" bzImage
cp arch/x86/boot/bzImage "$folder/bzImage"
echo "made $folder"
