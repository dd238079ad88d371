//! Where files lie, as readers of SARIF want it: below a root that the log names.
//!
//! # Role
//! A code host joins a finding to a file of the repository by a path relative to its root, on a
//! machine where the program was perhaps never built. So files below the root of the working copy
//! that the command was called in are said relative to that root, whichever folder of it the
//! build was made in; all others by their absolute paths.

use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// What the log calls the root of the sources.
const ROOT: &str = "SRCROOT";

/// What names the files of a SARIF run: the root, and each as it is to be written.
pub(super) struct Artifacts {
    root: PathBuf,
    /// The folder that the command was called in.
    folder: PathBuf,
}

impl Artifacts {
    /// Returns the folder that the command was called in, and the working copy around it.
    pub(super) fn here() -> Artifacts {
        Artifacts::at(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")))
    }

    fn at(folder: PathBuf) -> Artifacts {
        // Of a worktree or a submodule it is a file.
        let root = folder.ancestors().find(|above| above.join(".git").exists());
        Artifacts { root: root.unwrap_or(&folder).to_owned(), folder }
    }

    /// Returns what the names of roots stand for.
    pub(super) fn bases(&self) -> Value {
        let root = self.root.to_string_lossy();
        let slash = if root.ends_with('/') { "" } else { "/" };
        json!({ ROOT: {
            "uri": format!("file://{}{slash}", escaped(&root)),
            "description": { "text": "The root of the working copy that lockstead was called in." },
        }})
    }

    /// Returns where a file of the debug information lies.
    pub(super) fn location(&self, file: &str) -> Value {
        let path = self.resolved(Path::new(file));
        match path.strip_prefix(&self.root) {
            Ok(below) => json!({ "uri": escaped(&below.to_string_lossy()), "uriBaseId": ROOT }),
            Err(_) if path.is_absolute() => {
                json!({ "uri": format!("file://{}", escaped(&path.to_string_lossy())) })
            }
            // A compiler that was told to leave out where it worked: the place is to be found by
            // whoever has the sources.
            Err(_) => json!({ "uri": escaped(&path.to_string_lossy()), "uriBaseId": ROOT }),
        }
    }

    /// Returns the path without steps up, and from the root of the file system where the file is
    /// there.
    fn resolved(&self, file: &Path) -> PathBuf {
        let found = [&self.folder, &self.root].into_iter().find_map(|base| {
            // Of a file that is there the links count.
            let there = base.join(file).canonicalize().ok()?;
            let plain = without_steps_up(&base.join(file));
            // A root that is reached by a link itself is called as the user calls it.
            let same = plain.canonicalize().is_ok_and(|other| other == there);
            Some(if same { plain } else { there })
        });
        found.unwrap_or_else(|| without_steps_up(file))
    }
}

/// Returns the path without `.` and `..`, as far as names alone tell.
fn without_steps_up(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(plain.components().next_back(), Some(Component::Normal(_))) =>
            {
                plain.pop();
            }
            Component::ParentDir if plain.has_root() => {}
            other => plain.push(other),
        }
    }
    plain
}

fn escaped(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                text.push(byte.into());
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Makes a working copy with a file, and a folder in which it is built.
    fn copy() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there").join("a copy");
        for below in [".git", "src", "build/deep"] {
            fs::create_dir_all(root.join(below)).expect("made");
        }
        fs::write(root.join("src/bank.c"), "").expect("written");
        (folder, root)
    }

    fn said(artifacts: &Artifacts, file: &str) -> (String, bool) {
        let location = artifacts.location(file);
        let uri = location["uri"].as_str().expect("a text").to_owned();
        (uri, location["uriBaseId"] == ROOT)
    }

    #[test]
    fn files_of_builds_elsewhere_are_found_below_the_root() {
        let (_kept, root) = copy();
        let absolute = |path: &str| root.join(path).to_string_lossy().into_owned();
        for called in ["", "src", "build", "build/deep"] {
            let artifacts = Artifacts::at(root.join(called));
            for file in
                [absolute("src/bank.c"), absolute("build/../src/bank.c"), "src/bank.c".into()]
            {
                let wanted = ("src/bank.c".to_owned(), true);
                assert_eq!(said(&artifacts, &file), wanted, "{file} from {called}");
            }
            let base = artifacts.bases()[ROOT]["uri"].as_str().expect("a text").to_owned();
            assert!(base.starts_with("file:///") && base.ends_with("/a%20copy/"), "{base}");
        }
        let artifacts = Artifacts::at(root.join("build"));
        assert_eq!(said(&artifacts, "../src/bank.c"), ("src/bank.c".into(), true));
    }

    #[test]
    fn files_beside_the_root_are_absolute_and_unknown_ones_stay_as_they_are() {
        let (_kept, root) = copy();
        let artifacts = Artifacts::at(root);
        let beside = said(&artifacts, "/usr/include/../src/x y.c");
        assert_eq!(beside, ("file:///usr/src/x%20y.c".into(), false));
        assert_eq!(said(&artifacts, "./elsewhere/x.c"), ("elsewhere/x.c".into(), true));
    }

    #[test]
    fn without_a_working_copy_the_root_is_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().canonicalize().expect("it is there");
        // Whoever tests in a working copy may have its temporary folder there.
        if at.ancestors().any(|above| above.join(".git").exists()) {
            return;
        }
        fs::write(at.join("x.c"), "").expect("written");
        let artifacts = Artifacts::at(at.clone());
        let file = at.join("x.c").to_string_lossy().into_owned();
        assert_eq!(said(&artifacts, &file), ("x.c".into(), true));
    }
}
