//! The same C source built with mutexes, with semaphores, and without locks, and the
//! `.text` of each: what the announcement did with a kernel.
//!
//! The objects are linked but never run, so that the library itself is not needed;
//! its headers are part of this program.

use super::text::CallsObject;
use object::{Object as _, ObjectSection as _};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Functions with a pair in each object.
const PAIRS: u64 = 200;

const HEADERS: [(&str, &str); 4] = [
    ("base.h", include_str!("../../../crates/capi/include/lockstead/base.h")),
    ("low-half.h", include_str!("../../../crates/capi/include/lockstead/low-half.h")),
    ("mutex.h", include_str!("../../../crates/capi/include/lockstead/mutex.h")),
    ("semaphore.h", include_str!("../../../crates/capi/include/lockstead/semaphore.h")),
];

/// The name of a way, its type, and what takes and gives.
const WAYS: [(&str, &str, &str, &str); 5] = [
    ("none", "long", "(void)", "(void)"),
    ("mutex", "lks_mutex", "lks_mutex_lock", "lks_mutex_unlock"),
    ("semaphore", "lks_semaphore", "lks_semaphore_down", "(void)lks_semaphore_up"),
    ("mutex, called", "lks_mutex", "call_lock", "call_unlock"),
    ("semaphore, called", "lks_semaphore", "call_lock", "call_unlock"),
];

/// Builds all ways and reads their `.text`.
///
/// # Errors
/// Why that is not possible, for people.
pub(super) fn build_all() -> Result<Vec<CallsObject>, String> {
    let folder = tempfile::tempdir().map_err(|why| format!("no temporary folder: {why}"))?;
    let headers = folder.path().join("lockstead");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|why| format!("cannot write {}: {why}", path.display()))
    };
    fs::create_dir(&headers).map_err(|why| format!("no temporary folder: {why}"))?;
    for (name, text) in HEADERS {
        write(&headers.join(name), text)?;
    }
    let mut objects: Vec<CallsObject> = Vec::new();
    for (way, kind, take, give) in WAYS {
        write(&folder.path().join("both.c"), &source(kind, take, give))?;
        let text_bytes = build(folder.path())?;
        let bare = objects.first().map_or(text_bytes, |none| none.text_bytes);
        let bytes_per_pair = (text_bytes as f64 - bare as f64) / PAIRS as f64;
        objects.push(CallsObject { way, text_bytes, pairs: PAIRS, bytes_per_pair });
    }
    Ok(objects)
}

/// Returns a library of functions that each change two fields under the lock beside them.
fn source(kind: &str, take: &str, give: &str) -> String {
    let mut source = format!(
        "#include \"lockstead/mutex.h\"\n#include \"lockstead/semaphore.h\"\n\
         struct record {{ {kind} guard; long balance, moves; }};\n\
         void call_lock(void *lock);\nvoid call_unlock(void *lock);\n"
    );
    for n in 0..PAIRS {
        source += &format!(
            "void transfer_{n}(struct record *r, long amount)\n{{\n    {take}(&r->guard);\n    \
             r->balance += amount + {n};\n    r->moves++;\n    {give}(&r->guard);\n}}\n"
        );
    }
    source
}

fn build(folder: &Path) -> Result<u64, String> {
    let built = Command::new("cc")
        .args(["-std=c11", "-O2", "-fPIC", "-shared", "-I.", "both.c", "-o", "both.so"])
        .current_dir(folder)
        .output()
        .map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => "there is no C compiler (cc) here".to_owned(),
            _ => format!("the C compiler does not start: {why}"),
        })?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        let what = said.lines().find(|line| line.contains("error")).or(said.lines().next());
        return Err(format!("the C compiler refuses: {}", what.unwrap_or("")));
    }
    let file = fs::read(folder.join("both.so")).map_err(|why| why.to_string())?;
    let file = object::File::parse(&*file).map_err(|why| why.to_string())?;
    let text = file.section_by_name(".text").ok_or("the object has no .text")?;
    Ok(text.size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_built_and_differ_by_their_pairs_alone() {
        let objects = match build_all() {
            Ok(objects) => objects,
            Err(why) if why.contains("no C compiler") => {
                println!("skipped: {why}");
                return;
            }
            Err(why) => panic!("{why}"),
        };
        assert_eq!(objects.len(), WAYS.len());
        assert_eq!(objects[0].bytes_per_pair, 0.0);
        for object in &objects[1..] {
            assert!((4.0..400.0).contains(&object.bytes_per_pair), "{object:?}");
        }
        let of = |way| objects.iter().find(|object| object.way == way).map(|o| o.text_bytes);
        assert_eq!(of("mutex, called"), of("semaphore, called"), "a call is a call");
    }
}
