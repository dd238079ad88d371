//! The tables of `docs/json.md`, from the types that the JSON reports are made of.
//!
//! # Role
//! Tests of the programs that write reports use it; nothing that is installed does.
//!
//! ```text
//! types with Serialize ──schemars──▶ JSON Schema ──tables.rs──▶ tables ──here──▶ docs/json.md
//!   (feature `schema`)
//! ```
//!
//! # Protocol
//! The page has the fields of a report between `<!-- fields of NAME -->` and
//! `<!-- end of fields -->`, text by hand around that. A test names the sections of its program in
//! the order of the page and compares them ([`Reference::hold`]); with [`WRITE`] in its environment
//! it writes them instead. Each type has one table on the page, in the first section that needs it.

mod tables;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tables::Tables;

/// The variable that, if it is set, has the page written instead of compared.
pub const WRITE: &str = "LOCKSTEAD_WRITE_REFERENCE";

const END: &str = "<!-- end of fields -->";

/// The sections of the page that come from the types of one package.
pub struct Reference {
    package: &'static str,
    generator: SchemaGenerator,
    sections: Vec<(&'static str, Schema)>,
}

impl Reference {
    /// Begins with no section of that package.
    #[must_use]
    pub fn of(package: &'static str) -> Self {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        Self { package, generator, sections: Vec::new() }
    }

    /// Adds the section of this name, with the fields of `T`.
    #[must_use]
    pub fn section<T: JsonSchema>(mut self, name: &'static str) -> Self {
        self.sections.push((name, self.generator.subschema_for::<T>()));
        self
    }

    /// Compares the sections with those of the page, or writes them if [`WRITE`] is set.
    ///
    /// # Panics
    /// If the page has other fields, lacks a section, or has two headings of one name or a link to
    /// a heading that is not there.
    pub fn hold(mut self) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
        let page = std::fs::read_to_string(&file).expect("the page");
        let new = self.written(&page);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&file, &new).expect("the page can be written");
        } else {
            assert!(
                page == new,
                "docs/json.md is not what the types say: run \
                 {WRITE}=1 cargo test -p {} reference",
                self.package
            );
        }
        if let Some(wrong) = broken(&new) {
            panic!("docs/json.md: {wrong}");
        }
    }

    /// Returns the page with the sections written again.
    fn written(&mut self, page: &str) -> String {
        let types = self.generator.take_definitions(true);
        let roots: Vec<&str> = self
            .sections
            .iter()
            .map(|(_, schema)| tables::reference(schema.as_value()).expect("a type with a name"))
            .collect();
        let anchors: BTreeMap<String, String> = roots
            .iter()
            .zip(&self.sections)
            .map(|(&root, (name, _))| {
                let (before, _) = page.split_once(&start(name)).unwrap_or_else(|| {
                    panic!("docs/json.md has no line `{}`", start(name).trim_end())
                });
                (root.to_owned(), headings(before).pop().expect("a heading before the fields"))
            })
            .collect();
        let mut tables = Tables::new(&types, &anchors);
        let mut new = page.to_owned();
        for (root, (name, _)) in roots.into_iter().zip(&self.sections) {
            let start = start(name);
            let (before, rest) = new.split_once(&start).expect("found above");
            let (_, after) = rest.split_once(END).expect("its end");
            new = format!("{before}{start}\n{}{END}{after}", tables.of(root));
        }
        new
    }
}

fn start(name: &str) -> String {
    format!("<!-- fields of {name} -->\n")
}

/// Returns what links to the headings of a page are called, in their order.
fn headings(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_matches('#')));
    headings
        .map(|text| {
            let kept = text.trim().chars().filter(|&c| c.is_alphanumeric() || "-_ ".contains(c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// Returns what is wrong with the headings of a page and the links to them.
fn broken(page: &str) -> Option<String> {
    let mut known = BTreeSet::new();
    for heading in headings(page) {
        if !known.insert(heading.clone()) {
            return Some(format!("two headings are called {heading}: rename a type"));
        }
    }
    let mut links = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next());
    let dead = links.find(|&link| !known.contains(link))?;
    Some(format!("no heading is called {dead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program writes.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its fields' names and types are read")]
    struct Written {
        /// The first of its fields.
        pairs: Vec<(String, u32)>,
        /// The word that it has.
        first: Word,
        /// Another word, or null.
        second: Option<Word>,
        /// Only there sometimes.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Its own parts.
        parts: Option<Vec<Part>>,
    }

    /// A part of what is written.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its fields' names and types are read")]
    struct Part {
        /// What else was written.
        load: [f64; 3],
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only its variants' names are read")]
    enum Word {
        /// This one is said.
        Said,
        /// This one is not said.
        NotSaid,
    }

    #[test]
    fn fields_of_types_become_tables() {
        let page = "## It\n\n<!-- fields of it -->\nold\n<!-- end of fields -->\n\nThe end.\n";
        let wanted = "\
## It

<!-- fields of it -->

| field | type | meaning |
|---|---|---|
| `pairs` | array of arrays (string, integer) | The first of its fields. |
| `first` | string | The word that it has. `said`: This one is said. `not-said`: This one is not said. |
| `second` | string or null | Another word, or null. Its words are those of `first`. |
| `parts` | array of [`Part`](#part), or null | Its own parts. |
| `why` | string | Only there sometimes. |

### `Part`

A part of what is written.

| field | type | meaning |
|---|---|---|
| `load` | array of 3 numbers | What else was written. |

<!-- end of fields -->

The end.
";
        let new = Reference::of("it").section::<Written>("it").written(page);
        assert_eq!(new, wanted);
        assert_eq!(Reference::of("it").section::<Written>("it").written(&new), new);
    }

    #[test]
    fn headings_are_called_as_links_have_them() {
        let page = "# One\ntext\n## `lockstead sim run --json`\n### `A_b` …\n";
        assert_eq!(headings(page), ["one", "lockstead-sim-run---json", "a_b-"]);
    }

    #[test]
    fn dead_links_and_equal_headings_are_told() {
        assert_eq!(broken("## A\n[a](#a)\n### B\n"), None);
        assert!(broken("## A\n[b](#b)\n").is_some_and(|why| why.ends_with("called b")));
        assert!(broken("## A\n### `a`\n").is_some_and(|why| why.contains("two headings")));
    }
}
