//! What is built for one processor alone is told, with the reason.

use xtask::{files, root, text};

/// How a file says that it has something for x86-64.
const X86_64: [&str; 2] = ["target_arch = \"x86_64\"", "__x86_64__"];

/// Returns the paths, files or folders, that begin the rows of the table of what is left out.
fn told(document: &str) -> Vec<String> {
    let table = document.split("## What is left out").nth(1).expect("the document has the table");
    let table = table.split("\n## ").next().unwrap_or(table);
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn what_one_processor_alone_has_is_told_with_the_reason() {
    let told = told(&text(&root().join("docs/aarch64.md")));
    assert!(told.len() > 5, "not the table: {told:?}");
    let mut untold = Vec::new();
    let mut looked = 0;
    for folder in ["crates", "bench", "hangs"] {
        for path in files(folder, &["rs", "h", "hpp", "c", "cpp"]) {
            let source = text(&path);
            if !X86_64.iter().any(|name| source.contains(name)) {
                continue;
            }
            looked += 1;
            let path = path.strip_prefix(root()).expect("a file of the workspace");
            let path = path.display().to_string();
            let has_both = source.contains("aarch64");
            if !has_both && !told.iter().any(|row| path.starts_with(row.as_str())) {
                untold.push(path);
            }
        }
    }
    assert!(looked > 10, "looked at {looked} files only");
    assert!(untold.is_empty(), "no row in docs/aarch64.md, and nothing for aarch64: {untold:#?}");
    for row in &told {
        assert!(root().join(row).exists(), "docs/aarch64.md tells of {row}, which is not there");
    }
}
