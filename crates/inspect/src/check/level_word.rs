//! How a level stands in JSON: as the word that reports have.

use lockstead_rules::Level;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes the word, or null.
pub(super) fn serialize<S: Serializer>(level: &Option<Level>, to: S) -> Result<S::Ok, S::Error> {
    level.map(Level::word).serialize(to)
}

/// Reads the word, or null.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Level>, D::Error> {
    let Some(word) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let level = Level::from_word(&word);
    level.map(Some).ok_or_else(|| D::Error::custom(format_args!("`{word}` is no level")))
}
