//! A machine of the other processor, emulated: a kernel of Debian's, its libc, a shell, and test programs.

use super::system::{ends_well, is_installed};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The emulator, of Debian's package qemu-system-arm.
const EMULATOR: &str = "qemu-system-aarch64";

/// The seconds after which a machine is ended, and a single program in it.
const PATIENCE: &str = "3600";
const PATIENCE_OF_ONE: u32 = 600;

/// What the machine writes before and behind the output of a program.
pub(super) const BEGINS: &str = "=== begins ";
pub(super) const ENDS: &str = "=== ends ";

/// The parts of a machine.
pub(super) struct Machine {
    root: PathBuf,
    kernel: PathBuf,
}

impl Machine {
    /// Returns the machine whose parts lie in a root.
    ///
    /// # Errors
    /// What is missing, and which package has it.
    pub(super) fn find(root: &Path, kernel: &str) -> Result<Self, String> {
        is_installed(EMULATOR, "qemu-system-arm")?;
        is_installed("cpio", "cpio")?;
        let kernel = root.join("machine").join(format!("vmlinuz-{kernel}"));
        if !kernel.exists() {
            return Err(format!(
                "there is no {}: --kernel is cloud-arm64 or arm64-16k",
                kernel.display()
            ));
        }
        Ok(Machine { root: root.into(), kernel })
    }

    /// Tells whether the kernel's pages have 4 KiB.
    pub(super) fn has_small_pages(&self) -> bool {
        self.kernel.ends_with("vmlinuz-cloud-arm64")
    }

    /// Starts the machine with these programs, which run one after the other, and hands each line that it
    /// writes to `line`. `processor` is its model, as the emulator names it.
    ///
    /// # Errors
    /// What cannot be read or written, or started.
    pub(super) fn run(
        &self,
        processor: &str,
        programs: &[(String, PathBuf)],
        mut line: impl FnMut(&str),
    ) -> Result<(), String> {
        let folder = self.root.join("machine").join(format!("files-{}", std::process::id()));
        let archive = folder.with_extension("cpio");
        let made =
            self.files(&folder, programs).map_err(|error| format!("a machine's files: {error}"));
        let packed = made.and_then(|()| pack(&folder, &archive));
        // Twice the room, otherwise: the archive has all of it.
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        packed?;
        let mut machine = Command::new("timeout");
        machine.args([PATIENCE, EMULATOR, "-M", "virt", "-cpu", processor]);
        machine.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "3072", "-no-reboot"]);
        machine.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-append"]);
        machine.arg("console=ttyAMA0 quiet panic=-1 rdinit=/init");
        machine.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&archive);
        machine.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut machine = machine.spawn().map_err(|error| format!("timeout: {error}"))?;
        let output = machine.stdout.take().ok_or("a machine without an output")?;
        for bytes in BufReader::new(output).split(b'\n') {
            let bytes = bytes.map_err(|error| error.to_string())?;
            line(String::from_utf8_lossy(&bytes).trim_end());
        }
        let status = machine.wait().map_err(|error| error.to_string())?;
        fs::remove_file(&archive).map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("{EMULATOR}: {status}")) }
    }

    /// Makes the machine's file system.
    fn files(&self, folder: &Path, programs: &[(String, PathBuf)]) -> std::io::Result<()> {
        for inside in ["bin", "dev", "etc", "lib", "proc", "programs", "root", "sys", "tmp"] {
            fs::create_dir_all(folder.join(inside))?;
        }
        let libraries = self.root.join("usr/lib/aarch64-linux-gnu");
        for library in ["ld-linux-aarch64.so.1", "libc.so.6", "libgcc_s.so.1", "libm.so.6"] {
            fs::copy(libraries.join(library), folder.join("lib").join(library))?;
        }
        fs::copy(self.root.join("machine/busybox"), folder.join("bin/busybox"))?;
        let mut script = String::from(
            "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin HOME=/root\n\
             mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t cgroup2 cgroups /sys/fs/cgroup; mount -t devtmpfs dev /dev\n\
             mkdir /dev/shm; mount -t tmpfs shm /dev/shm; mount -t tmpfs tmp /tmp\n\
             ip link set lo up; echo root:x:0:0::/root:/bin/sh > /etc/passwd\n\
             uname -srm; getconf PAGESIZE 2>/dev/null; cd /programs\n",
        );
        for (name, program) in programs {
            fs::copy(program, folder.join("programs").join(name))?;
            script += &format!(
                "echo '{BEGINS}{name}'; timeout {PATIENCE_OF_ONE} ./{name} --nocapture 2>&1; echo \"{ENDS}$?\"\n"
            );
        }
        script += "poweroff -f\n";
        let init = folder.join("init");
        fs::write(&init, script)?;
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(folder.join("bin/busybox"), fs::Permissions::from_mode(0o755))
    }
}

/// Packs a folder as the kernel unpacks its first files.
fn pack(folder: &Path, archive: &Path) -> Result<(), String> {
    const PACK: &str = "cd \"$1\" && find . | cpio --quiet --create --format=newc > \"$2\"";
    let mut pack = Command::new("sh");
    ends_well(pack.args(["-c", PACK, "pack"]).arg(folder).arg(archive))
}
