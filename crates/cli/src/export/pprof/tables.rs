//! What the samples of a profile refer to by numbers, each once.

use super::messages::{Function, Line, Location, Mapping};
use crate::recording::FrameNames;
use std::collections::HashMap;

/// The tables of a profile. Numbers count from 1; of the texts the first one, with the number 0, is
/// empty.
#[derive(Default)]
pub(super) struct Tables {
    /// All texts of the profile.
    pub(super) texts: Vec<String>,
    /// The programs and libraries.
    pub(super) mappings: Vec<Mapping>,
    /// The functions of frames.
    pub(super) functions: Vec<Function>,
    /// The frames of stacks.
    pub(super) locations: Vec<Location>,
    text_places: HashMap<String, i64>,
    mapping_ids: HashMap<i64, u64>,
    /// Functions by their names and files.
    function_ids: HashMap<(i64, i64), u64>,
    /// Frames by module, function and line.
    location_ids: HashMap<(u64, u64, u32), u64>,
}

impl Tables {
    /// Returns tables without entries but the empty text.
    pub(super) fn new() -> Tables {
        let mut tables = Tables::default();
        tables.text("");
        tables
    }

    /// Returns the place of a text.
    pub(super) fn text(&mut self, text: &str) -> i64 {
        if let Some(&place) = self.text_places.get(text) {
            return place;
        }
        let place = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.text_places.insert(text.to_owned(), place);
        place
    }

    /// Returns the number of a frame.
    pub(super) fn location(&mut self, frame: &FrameNames) -> u64 {
        let mapping = frame.module.as_deref().map_or(0, |module| self.mapping(module));
        let function = self.function(frame);
        let line = frame.line.unwrap_or(0);
        let next = self.locations.len() as u64 + 1;
        *self.location_ids.entry((mapping, function, line)).or_insert_with(|| {
            self.locations.push(Location {
                id: next,
                mapping_id: mapping,
                line: vec![Line { function_id: function, line: line.into() }],
            });
            next
        })
    }

    fn mapping(&mut self, module: &str) -> u64 {
        let filename = self.text(module);
        let next = self.mappings.len() as u64 + 1;
        *self.mapping_ids.entry(filename).or_insert_with(|| {
            self.mappings.push(Mapping {
                id: next,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
            next
        })
    }

    fn function(&mut self, frame: &FrameNames) -> u64 {
        let name = self.text(&frame.name);
        let filename = self.text(frame.file.as_deref().unwrap_or_default());
        let next = self.functions.len() as u64 + 1;
        *self.function_ids.entry((name, filename)).or_insert_with(|| {
            self.functions.push(Function { id: next, name, system_name: name, filename });
            next
        })
    }
}
