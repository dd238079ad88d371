//! Tables of fields, from what JSON Schema says of the types.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// A type of more words than this has a table of its own, and is not told with each field.
const FEW: usize = 8;

/// One field of an object.
struct FieldRow {
    name: String,
    kind: String,
    meaning: String,
    /// The types of words that it can have.
    words: Vec<String>,
}

/// Writes the tables of types, each type once.
pub(crate) struct Tables<'a> {
    /// The types, as JSON Schema has them.
    types: &'a Map<String, Value>,
    /// The headings of the sections, by the types that these are about.
    anchors: &'a BTreeMap<String, String>,
    /// The types that have their table already.
    told: BTreeSet<String>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(
        types: &'a Map<String, Value>,
        anchors: &'a BTreeMap<String, String>,
    ) -> Self {
        Self { types, anchors, told: BTreeSet::new() }
    }

    /// Returns the tables of a section: of its type and of those that this refers to and that have
    /// none yet.
    pub(crate) fn of(&mut self, root: &str) -> String {
        let mut text = String::new();
        let mut queue = VecDeque::from([root.to_owned()]);
        while let Some(name) = queue.pop_front() {
            let elsewhere = name != root && self.anchors.contains_key(&name);
            if elsewhere || !self.told.insert(name.clone()) {
                continue;
            }
            let schema = &self.types[&name];
            if name != root {
                let _ = write!(text, "### `{name}`\n\n{}\n\n", description(schema));
            }
            if words(schema).is_empty() {
                self.table(schema, &mut text);
            } else {
                text += "| string | meaning |\n|---|---|\n";
                for (word, meaning) in words(schema) {
                    let _ = writeln!(text, "| `{word}` | {meaning} |");
                }
            }
            text.push('\n');
            let mut referred = Vec::new();
            collect(schema, &mut referred);
            let few = |name: &String| (1..=FEW).contains(&words(&self.types[name]).len());
            queue.extend(referred.into_iter().filter(|name| !few(name)));
        }
        text
    }

    fn table(&self, schema: &Value, text: &mut String) {
        *text += "| field | type | meaning |\n|---|---|---|\n";
        // The first field with words tells them.
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        for FieldRow { name, kind, mut meaning, words: types } in self.fields(schema) {
            for one in types {
                match first.get(&one) {
                    Some(field) => {
                        let _ = write!(meaning, " Its words are those of `{field}`.");
                    }
                    None => {
                        for (word, told) in words(&self.types[&one]) {
                            let _ = write!(meaning, " `{word}`: {told}");
                        }
                        first.insert(one, name.clone());
                    }
                }
            }
            let _ = writeln!(text, "| `{name}` | {kind} | {meaning} |");
        }
    }

    /// Returns the fields of an object: its own, then those of its variants.
    fn fields(&self, schema: &Value) -> Vec<FieldRow> {
        let mut fields = Vec::new();
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        // The order of the type; the properties themselves are sorted by name.
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let optional = properties.keys().map(String::as_str);
        let mut seen = BTreeSet::new();
        for name in required.iter().copied().chain(optional).filter(|&name| seen.insert(name)) {
            let Some(property) = properties.get(name).filter(|one| one.get("const").is_none())
            else {
                continue;
            };
            let mut field = self.field(name, property);
            if !required.contains(&name) {
                // It is left out in place of a null.
                let kind =
                    field.kind.strip_suffix("null").map(|kind| kind.trim_end_matches(" or "));
                field.kind =
                    kind.map_or(field.kind.clone(), |kind| kind.trim_end_matches(',').into());
            }
            fields.push(field);
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
        let meaning = meanings.join(" ");
        fields.push(FieldRow { name, kind: "string".into(), meaning, words: Vec::new() });
        fields.append(&mut more);
    }

    fn field(&self, name: &str, schema: &Value) -> FieldRow {
        let mut referred = Vec::new();
        collect(schema, &mut referred);
        referred.retain(|name| (1..=FEW).contains(&words(&self.types[name]).len()));
        FieldRow {
            name: name.to_owned(),
            kind: self.kind(schema),
            meaning: description(schema),
            words: referred,
        }
    }

    /// Returns the type of a value, in words.
    fn kind(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            let own = name.to_lowercase();
            let link = format!("[`{name}`](#{})", self.anchors.get(name).unwrap_or(&own));
            return match words(&self.types[name]).len() {
                1..=FEW => "string".into(),
                _ => link,
            };
        }
        let kinds: Vec<String> = match (&schema["anyOf"], &schema["type"]) {
            (Value::Array(kinds), _) => kinds.iter().map(|kind| self.kind(kind)).collect(),
            (_, Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds.map(|kind| self.simple(kind, schema)).collect()
            }
            (_, Value::String(kind)) => vec![self.simple(kind, schema)],
            _ => vec!["any".into()],
        };
        match &kinds[..] {
            [list, null] if list.contains(" of ") => format!("{list}, or {null}"),
            kinds => kinds.join(" or "),
        }
    }

    fn simple(&self, kind: &str, schema: &Value) -> String {
        if kind != "array" {
            return kind.to_owned();
        }
        if let Some(parts) = schema["prefixItems"].as_array() {
            let parts: Vec<String> = parts.iter().map(|part| self.kind(part)).collect();
            return format!("array ({})", parts.join(", "));
        }
        let count = match (&schema["minItems"], &schema["maxItems"]) {
            (Value::Number(least), Value::Number(most)) if least == most => format!("{least} "),
            _ => String::new(),
        };
        format!("array of {count}{}", plural(&self.kind(&schema["items"])))
    }
}

fn plural(kind: &str) -> String {
    match kind.split_once(' ') {
        None if kind.starts_with('[') || kind == "any" => kind.into(),
        None => format!("{kind}s"),
        Some(("array", rest)) => format!("arrays {rest}"),
        Some(_) => kind.into(),
    }
}

/// Returns the words of a type and what they mean; none of a type that is no word.
fn words(schema: &Value) -> Vec<(&str, String)> {
    let words = schema["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
    let found: Option<Vec<_>> =
        words.iter().map(|word| Some((word["const"].as_str()?, description(word)))).collect();
    found.unwrap_or_default()
}

/// Returns the name of the type that a schema refers to.
pub(crate) fn reference(schema: &Value) -> Option<&str> {
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
