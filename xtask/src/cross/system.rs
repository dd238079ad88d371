//! Where programs for the other processor are built: in a root of Debian's, or here.

use crate::root;
use crate::staging::make_folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The processor, as Rust names it with its system and its C library.
pub(super) const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// The linker, and the emulator of one process.
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// What a root has.
const PACKAGES: &str = "rustc,cargo,libstd-rust-dev,libstd-rust-dev:arm64,gcc,libc6-dev,gcc-aarch64-linux-gnu,\
    g++-aarch64-linux-gnu,libc6-dev-arm64-cross,libc6:arm64,libgcc-s1:arm64,libstdc++6:arm64,qemu-user,\
    pkg-config,ca-certificates,xz-utils";

/// Where the sources lie inside a root, and where what is built does.
pub(super) const INSIDE: &str = "/lockstead";
pub(super) const OUTPUT: &str = "/output";

/// Fetches what a machine needs: a kernel of the distribution's of each sort, with its modules for a disk and
/// the file system on it, and a shell.
const MACHINE: &str = r#"
set -e
mkdir -p /machine/packages
apt-get -q -o Acquire::Check-Valid-Until=false update
# A root that was made before it was needed has none.
command -v xz > /dev/null || apt-get -q -y -o APT::Sandbox::User=root install xz-utils
cd /machine/packages
for sort in cloud-arm64 arm64-16k; do
    image=$(apt-cache depends linux-image-$sort:arm64 | sed -n 's/.*Depends: \(linux-image-[^:]*\).*/\1/p' | head -n 1)
    # The kernel itself and its modules are in packages of their own since 7.2.
    parts=$(apt-cache depends $image:arm64 | sed -n 's/.*Depends: \(linux-\(binary\|modules\)-[^:]*\).*/\1:arm64/p')
    apt-get -q -o APT::Sandbox::User=root download ${parts:-$image:arm64}
    rm -rf kernel && mkdir kernel
    for package in linux-*.deb; do dpkg -x $package kernel; done
    rm linux-*.deb
    cp "$(find kernel -name 'vmlinuz*' -type f | head -n 1)" /machine/vmlinuz-$sort
    # Those that the kernel has built in are no files. The machine loads them in the order of their names.
    rm -rf /machine/modules-$sort && mkdir /machine/modules-$sort
    number=0
    for name in virtio_blk crc16 mbcache jbd2 ext4; do
        number=$((number+1))
        module=$(find kernel -name "$name.ko*" -type f | head -n 1)
        case $module in
            '') ;;
            *.xz) xz --decompress --stdout $module > /machine/modules-$sort/$number-$name.ko ;;
            *) cp $module /machine/modules-$sort/$number-$name.ko ;;
        esac
    done
done
apt-get -q -o APT::Sandbox::User=root download busybox-static:arm64
dpkg -x busybox-static_*.deb busybox
cp "$(find busybox -path '*bin/busybox' -type f)" /machine/busybox
rm -rf /machine/packages
touch /machine/complete-with-file-system
"#;

/// The kernel that no package has, and what is chosen of it.
const OWN_KERNEL: &str = "arm64-64k";
const CHOSEN: &str = include_str!("pages-64k.config");

/// Builds that kernel of the distribution's sources. Its first argument is what is chosen, of which the sources
/// have to take all.
const OWN_KERNEL_BUILD: &str = r#"
set -e
apt-get -q -o Acquire::Check-Valid-Until=false update
source=$(apt-cache depends linux-source | sed -n 's/.*Depends: \(linux-source-[0-9.]*\).*/\1/p' | head -n 1)
[ -n "$source" ] || { echo "the suite has no package of the kernel's sources"; exit 1; }
apt-get -q -y -o APT::Sandbox::User=root install --no-install-recommends bc bison flex make $source
cd /machine
rm -rf $source
tar -xf /usr/src/$source.tar.xz
cd $source
printf '%s' "$1" > chosen
build() { make -s ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- "$@"; }
build KCONFIG_ALLCONFIG=chosen allnoconfig
grep '^CONFIG' chosen | while read choice; do
    grep -qx $choice .config || { echo "the sources do not take $choice"; exit 1; }
done
build -j$(nproc) Image
mkdir -p /machine/modules-arm64-64k
rm -f /machine/chosen-arm64-64k
cp arch/arm64/boot/Image /machine/vmlinuz-arm64-64k
# Last: what is not complete is made anew.
cp chosen /machine/chosen-arm64-64k
cd ..
rm -rf $source
"#;

/// What builds for the other processor.
pub(super) trait Toolchain {
    /// Returns a command that runs with the workspace as its folder, and builds for the processor.
    fn command(&self, words: &[&str]) -> Command;
    /// Returns where a path that such a command has printed lies for this process.
    fn outside(&self, path: &str) -> PathBuf;
    /// Returns the folder of a machine's parts, with the kernel of this name if that can be made.
    fn machine_folder(&self, kernel: &str) -> Result<Option<PathBuf>, String>;
    /// Returns the machine's disk, which the first call makes.
    fn disk(&self) -> Result<PathBuf, String>;
}

/// A root of Debian's, entered by `chroot`.
pub(super) struct Root {
    folder: PathBuf,
    suite: String,
    mirror: Option<String>,
}

impl Root {
    /// Sets the root up, if it is not.
    pub(super) fn set_up(folder: &Path, suite: &str, mirror: Option<&str>) -> Result<Self, String> {
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        for (program, package) in [("unshare", "util-linux"), ("chroot", "coreutils")] {
            is_installed(program, package)?;
        }
        let me = Command::new("id").arg("-u").output().map_err(|error| error.to_string())?;
        if String::from_utf8_lossy(&me.stdout).trim() != "0" {
            return Err("a root is set up and entered as root only (mount, chroot); with a Rust and an emulator \
                        of this system: --here"
                .into());
        }
        let made = folder.join("root");
        let mirrored = mirror.map(str::to_owned);
        let root = Root { folder, suite: suite.into(), mirror: mirrored };
        // Written last: what is not complete is made anew.
        if !made.join("etc/lockstead-complete").exists() {
            is_installed("mmdebstrap", "mmdebstrap")?;
            if made.exists() {
                return Err(format!("{} was begun and not finished: remove it", made.display()));
            }
            println!("== setting up {} ({suite}; some minutes)", made.display());
            make_folder(&root.folder)?;
            let mut bootstrap = Command::new("mmdebstrap");
            bootstrap.args(["--mode=root", "--variant=minbase", "--architectures=amd64,arm64"]);
            bootstrap.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
            bootstrap.arg(format!("--include={PACKAGES}")).arg(suite).arg(&made).args(mirror);
            ends_well(&mut bootstrap)?;
            fs::write(made.join("etc/lockstead-complete"), "").map_err(|e| e.to_string())?;
        }
        for inside in [INSIDE, OUTPUT] {
            make_folder(&made.join(&inside[1..]))?;
        }
        make_folder(&root.folder.join("output/home"))?;
        root.vendor()?;
        if !made.join("machine/complete-with-file-system").exists() {
            println!("== fetching kernels");
            ends_well(&mut root.command(&["sh", "-c", MACHINE]))?;
        }
        Ok(root)
    }

    /// Puts the sources of the crates where a cargo without a network finds them.
    fn vendor(&self) -> Result<(), String> {
        let vendored = self.folder.join("output/vendor");
        let mut vendor = Command::new(env!("CARGO"));
        vendor.current_dir(root()).args(["vendor", "--locked", "--quiet"]).arg(&vendored);
        ends_well(vendor.stdout(Stdio::null()))?;
        let settings = format!(
            "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"{OUTPUT}/vendor\"\n"
        );
        fs::write(self.folder.join("output/home/config.toml"), settings).map_err(|e| e.to_string())
    }
}

impl Toolchain for Root {
    fn command(&self, words: &[&str]) -> Command {
        // In a mount namespace of its own, so that nothing stays mounted.
        const ENTER: &str = r#"
            set -e
            mount --bind "$1" "$2/lockstead"
            mount --bind "$3" "$2/output"
            mount -t proc proc "$2/proc"
            mount --bind /dev "$2/dev"
            cp -L /etc/resolv.conf "$2/etc/resolv.conf" 2>/dev/null || true
            cd "$2"; shift 3
            exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"
        "#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "enter"]).arg(root());
        command.arg(self.folder.join("root")).arg(self.folder.join("output"));
        command.args(settings(OUTPUT)).arg(format!("CARGO_HOME={OUTPUT}/home"));
        command.args(["CARGO_NET_OFFLINE=true", "sh", "-c"]);
        command.arg(format!("cd {INSIDE} && exec \"$@\"")).arg("inside").args(words);
        command
    }

    fn outside(&self, path: &str) -> PathBuf {
        match path.strip_prefix(OUTPUT) {
            Some(rest) => self.folder.join("output").join(rest.trim_start_matches('/')),
            None => self.folder.join("root").join(path.trim_start_matches('/')),
        }
    }

    fn machine_folder(&self, kernel: &str) -> Result<Option<PathBuf>, String> {
        let root = self.folder.join("root");
        let chosen = fs::read_to_string(root.join("machine/chosen-arm64-64k"));
        let is_made = chosen.is_ok_and(|chosen| chosen == CHOSEN);
        if kernel == OWN_KERNEL && !is_made {
            println!("== building a kernel with pages of 64 KiB (about ten minutes)");
            let mut build = self.command(&["sh", "-c", OWN_KERNEL_BUILD, "build", CHOSEN]);
            ends_well(&mut build)?;
        }
        Ok(Some(root))
    }

    fn disk(&self) -> Result<PathBuf, String> {
        super::disk::set_up(&self.folder, &self.suite, self.mirror.as_deref())
    }
}

/// What this system has.
pub(super) struct Here {
    output: String,
}

impl Here {
    /// Returns what this system has; or what it has not, in words.
    pub(super) fn find() -> Result<Self, String> {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", TRIPLE]);
        let answer = rustc.output().map_err(|error| format!("rustc: {error}"))?;
        let std = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim_end());
        let has_std = fs::read_dir(&std).is_ok_and(|mut files| {
            files.any(|file| {
                file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
            })
        });
        if !has_std {
            return Err(format!(
                "no standard library for {TRIPLE} (`rustup target add {TRIPLE}` gets it, or \
                 libstd-rust-dev:arm64; `cargo xtask cross aarch64` sets up a root that has one)"
            ));
        }
        is_installed(LINKER, "gcc-aarch64-linux-gnu")?;
        is_installed(EMULATOR, "qemu-user")?;
        Ok(Here { output: root().join("target/cross/here").display().to_string() })
    }
}

impl Toolchain for Here {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(settings(&self.output)).args(words).current_dir(root());
        command
    }

    fn outside(&self, path: &str) -> PathBuf {
        path.into()
    }

    fn machine_folder(&self, _: &str) -> Result<Option<PathBuf>, String> {
        Ok(None)
    }

    fn disk(&self) -> Result<PathBuf, String> {
        Err("a machine's disk is made beside a root alone".into())
    }
}

/// Returns the variables by which cargo builds for the processor and runs what it has built.
fn settings(output: &str) -> [String; 5] {
    [
        format!("CARGO_TARGET_DIR={output}/build"),
        format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER={LINKER}"),
        format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER={EMULATOR}"),
        "CARGO_INCREMENTAL=0".into(),
        // Twenty megabytes of each of dozens of test programs, which nobody looks at.
        "CARGO_PROFILE_DEV_DEBUG=0".into(),
    ]
}

/// Says which package a program is in that is not there.
pub(super) fn is_installed(program: &str, package: &str) -> Result<(), String> {
    match Command::new(program).arg("--version").stdout(Stdio::null()).status() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{program} is not installed (Debian's package {package} has it)")),
    }
}

/// Runs a command, whose output is seen.
pub(super) fn ends_well(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
