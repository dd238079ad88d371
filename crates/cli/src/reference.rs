//! The reference of the JSON reports, from the types that they are made of.
//!
//! `docs/json.md` has the fields of a report between `<!-- fields of NAME -->` and
//! `<!-- end of fields -->`. [`WRITE`] in the environment of this test writes them again.

use crate::report::WrittenReport;
use crate::shm::SegmentFacts;
use lockstead_inspect::snapshot::Snapshot;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;

/// The variable that, if it is set, has the page written instead of compared.
const WRITE: &str = "LOCKSTEAD_WRITE_REFERENCE";
const END: &str = "<!-- end of fields -->";

/// One field of an object.
struct FieldRow {
    name: String,
    kind: String,
    meaning: String,
}

/// The types, as JSON Schema has them.
struct Reference {
    types: Map<String, Value>,
    /// The types that have their table already.
    told: BTreeSet<String>,
}

impl Reference {
    /// Returns the tables of a type and of those that it refers to, each type once on a page.
    fn tables(&mut self, root: &str) -> String {
        let mut text = String::new();
        let mut queue = VecDeque::from([root.to_owned()]);
        while let Some(name) = queue.pop_front() {
            if !self.told.insert(name.clone()) {
                continue;
            }
            let schema = &self.types[&name];
            let fields = self.fields(schema);
            if name != root {
                let _ = write!(text, "### `{name}`\n\n{}\n\n", description(schema));
            }
            text += "| field | type | meaning |\n|---|---|---|\n";
            for FieldRow { name, kind, meaning } in fields {
                let _ = writeln!(text, "| `{name}` | {kind} | {meaning} |");
            }
            text.push('\n');
            let mut referred = Vec::new();
            collect(schema, &mut referred);
            queue.extend(referred.into_iter().filter(|name| !is_word(&self.types[name])));
        }
        text
    }

    /// Returns the fields of an object: its own, then those of its variants.
    fn fields(&self, schema: &Value) -> Vec<FieldRow> {
        let mut fields = Vec::new();
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        // The order of the type; the properties themselves are sorted by name.
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let optional = properties.keys().map(String::as_str);
        let mut seen = BTreeSet::new();
        for name in required.chain(optional).filter(|&name| seen.insert(name)) {
            let Some(property) = properties.get(name).filter(|one| one.get("const").is_none())
            else {
                continue;
            };
            fields.push(self.field(name, property));
        }
        let all = schema["allOf"].as_array().into_iter().flatten().chain([schema]);
        for variants in all.filter_map(|one| one["oneOf"].as_array()) {
            self.variants(variants, &mut fields);
        }
        fields
    }

    /// Adds the fields of an object that is one of several, told apart by one field.
    fn variants(&self, variants: &[Value], fields: &mut Vec<FieldRow>) {
        let tag = |variant: &Value| {
            let properties = variant["properties"].as_object()?;
            let (name, tag) = properties.iter().find(|(_, one)| one.get("const").is_some())?;
            Some((name.clone(), tag["const"].as_str()?.to_owned()))
        };
        let mut meanings = Vec::new();
        let mut name = String::new();
        let mut more: Vec<FieldRow> = Vec::new();
        for variant in variants {
            let Some((tag, value)) = tag(variant) else { continue };
            meanings.push(format!("`{value}`: {}", description(variant)));
            name = tag;
            for mut field in self.fields(variant) {
                let known = more.iter_mut().find(|known| {
                    known.name == field.name && known.meaning.ends_with(&field.meaning)
                });
                let with = format!("with `{value}`");
                match known {
                    Some(known) => known.meaning = format!("{with}, {}", known.meaning),
                    None => {
                        field.meaning = format!("{with}: {}", field.meaning);
                        more.push(field);
                    }
                }
            }
        }
        fields.push(FieldRow { name, kind: "string".into(), meaning: meanings.join(" ") });
        fields.append(&mut more);
    }

    fn field(&self, name: &str, schema: &Value) -> FieldRow {
        let mut meaning = description(schema);
        let mut referred = Vec::new();
        collect(schema, &mut referred);
        for word in referred.iter().map(|name| &self.types[name]).filter(|one| is_word(one)) {
            for value in word["oneOf"].as_array().into_iter().flatten() {
                let text = value["const"].as_str().unwrap_or_default();
                let _ = write!(meaning, " `{text}`: {}", description(value));
            }
        }
        FieldRow { name: name.to_owned(), kind: self.kind(schema), meaning }
    }

    fn kind(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            return match is_word(&self.types[name]) {
                true => "string".into(),
                false => format!("[`{name}`](#{})", name.to_lowercase()),
            };
        }
        if let Some(kinds) = schema["anyOf"].as_array() {
            return kinds.iter().map(|kind| self.kind(kind)).collect::<Vec<_>>().join(" or ");
        }
        match &schema["type"] {
            Value::String(kind) if kind == "array" => {
                format!("array of {}", self.kind(&schema["items"]))
            }
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => "any".into(),
        }
    }
}

/// Returns whether a type is one of several words.
fn is_word(schema: &Value) -> bool {
    let words = schema["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
    !words.is_empty() && words.iter().all(|word| word["type"] == "string")
}

/// Returns the name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Adds all types that a schema refers to, in the order of the required fields where there is one.
fn collect(schema: &Value, found: &mut Vec<String>) {
    found.extend(reference(schema).map(str::to_owned));
    match schema {
        Value::Object(parts) => {
            let properties = &schema["properties"];
            let required = schema["required"].as_array().into_iter().flatten();
            for name in required.filter_map(Value::as_str) {
                collect(&properties[name], found);
            }
            parts.values().for_each(|part| collect(part, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, found)),
        _ => {}
    }
}

/// Returns what the documentation of a type or a field says, in one line of a table.
fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

#[test]
fn the_page_has_the_fields_of_the_types() {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let roots = [
        ("lockstead dump", generator.subschema_for::<Snapshot>()),
        ("lockstead run", generator.subschema_for::<WrittenReport<'_>>()),
        ("lockstead shm", generator.subschema_for::<SegmentFacts>()),
    ];
    let types = generator.take_definitions(true);
    let mut reference = Reference { types, told: BTreeSet::new() };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = std::fs::read_to_string(&file).expect("the page");
    let mut new = page.clone();
    for (name, schema) in roots {
        let root = self::reference(schema.as_value()).expect("a type with a name");
        let start = format!("<!-- fields of {name} -->\n");
        let (before, rest) = new.split_once(&start).expect("the section");
        let (_, after) = rest.split_once(END).expect("its end");
        new = format!("{before}{start}\n{}{END}{after}", reference.tables(root));
    }
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, new).expect("the page can be written");
        return;
    }
    assert!(
        page == new,
        "docs/json.md is not what the types say: run {WRITE}=1 cargo test -p lockstead-cli reference"
    );
}
