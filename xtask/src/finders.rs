//! What pkg-config and CMake want to know of an installed library: the same for that of the locks in memory and
//! for that of the locks over etcd.
//!
//! ```text
//!   NAME.pc                   pkg-config --cflags --libs NAME ──▶ -I… -L… -lNAME
//!   cmake/NAME/NAME-config    find_package(NAME) ──▶ Lockstead::TARGET, shared, and Lockstead::TARGET_static
//! ```

use crate::staging::{ABI, VERSION, write};
use std::path::Path;

/// A library that programs link.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// Its name, as `-l` and pkg-config have it.
    pub name: &'a str,
    /// Its name in CMake, behind `Lockstead::`.
    pub target: &'a str,
    /// What it is, for people.
    pub what: &'a str,
    /// What programs that use it are compiled with.
    pub define: Option<&'a str>,
}

/// Writes what pkg-config reads of a library into the folder `lib`, which programs find at `libdir` below the
/// prefix. Without a prefix the file says where it lies itself, as one in an archive does that is unpacked anywhere.
///
/// The unwinder is not among the libraries: compilers add it by themselves, of the kind that fits to a static
/// program or to another one.
///
/// # Errors
/// What could not be written.
pub fn pkg_config(
    library: &Library<'_>,
    lib: &Path,
    libdir: &str,
    prefix: Option<&Path>,
) -> Result<(), String> {
    let Library { name, what, define, .. } = *library;
    // A folder of a known name may have spaces. Of its own one pkg-config has put a backslash before each.
    let (prefix, quote) = match prefix {
        Some(prefix) => (prefix.display().to_string(), "\""),
        None => {
            let up = "/..".repeat(1 + Path::new(libdir).components().count());
            (format!("${{pcfiledir}}{up}"), "")
        }
    };
    let define = define.map(|define| format!(" -D{define}")).unwrap_or_default();
    let text = format!(
        "prefix={prefix}\nlibdir=${{prefix}}/{libdir}\nincludedir=${{prefix}}/include\n\n\
         Name: {name}\nDescription: {what}\nVersion: {VERSION}\n\
         Libs: -L{quote}${{libdir}}{quote} -l{name}\nLibs.private: -lpthread -ldl -lm\n\
         Cflags: -I{quote}${{includedir}}{quote}{define}\n"
    );
    write(&lib.join(format!("pkgconfig/{name}.pc")), &text)
}

/// Writes what CMake reads of a package with these libraries into the folder `lib`, which lies at `libdir` below
/// the prefix. Each is there as an archive, and shared where `shared` says so.
///
/// # Errors
/// What could not be written.
pub fn cmake(
    package: &str,
    libraries: &[Library<'_>],
    lib: &Path,
    libdir: &str,
    shared: bool,
) -> Result<(), String> {
    let up = "/..".repeat(2 + Path::new(libdir).components().count());
    let mut text = String::new();
    for library in libraries {
        let Library { target, what, .. } = library;
        text += &format!("# Lockstead::{target}, Lockstead::{target}_static: {what}.\n");
    }
    if !shared {
        text += "# Those that are not static are left out: the library was built for another C library.\n";
    }
    text += &format!(
        "get_filename_component(_lockstead \"${{CMAKE_CURRENT_LIST_DIR}}{up}\" ABSOLUTE)\n\
         include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
    );
    for library in libraries {
        let Library { name, target, define, .. } = *library;
        if shared {
            let file = format!("lib{name}.so.{ABI}");
            let soname = format!("\n    IMPORTED_SONAME \"{file}\"");
            text += &imported(target, "SHARED", &format!("{libdir}/{file}"), define, &soname);
        }
        let needs = "\n    INTERFACE_LINK_LIBRARIES \"Threads::Threads;${CMAKE_DL_LIBS};m\"";
        let target = format!("{target}_static");
        text += &imported(&target, "STATIC", &format!("{libdir}/lib{name}.a"), define, needs);
    }
    text += "unset(_lockstead)\n";
    // In lower case CMake finds them whatever the case of the name that a project asks for.
    let folder = lib.join("cmake").join(package);
    write(&folder.join(format!("{package}-config.cmake")), &text)?;
    write(&folder.join(format!("{package}-config-version.cmake")), &version())
}

/// Returns the lines that make a target of a file below the prefix.
fn imported(target: &str, kind: &str, file: &str, define: Option<&str>, more: &str) -> String {
    let define = define.unwrap_or_default();
    format!(
        "if(NOT TARGET Lockstead::{target})\n  add_library(Lockstead::{target} {kind} IMPORTED)\n  \
         set_target_properties(Lockstead::{target} PROPERTIES\n    \
         IMPORTED_LOCATION \"${{_lockstead}}/{file}\"\n    \
         INTERFACE_INCLUDE_DIRECTORIES \"${{_lockstead}}/include\"\n    \
         INTERFACE_COMPILE_DEFINITIONS \"{define}\"{more})\nendif()\n"
    )
}

/// Returns how CMake tells whether this version is one that a project asks for.
fn version() -> String {
    let compatible: Vec<_> = VERSION.split('.').take(2).collect();
    let compatible = compatible.join(".");
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION\n    \
         AND \"${{PACKAGE_FIND_VERSION_MAJOR}}.${{PACKAGE_FIND_VERSION_MINOR}}\" \
         VERSION_EQUAL \"{compatible}\")\n  \
         set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n"
    )
}
