//! What the commands `lockstead` and `lockstead-bench` have in common: how they print tables
//! and numbers, write files, tell the user something, and end.
//!
//! | module | what it gives |
//! |---|---|
//! | [`table`] | tables of text, numbers as people read them |
//! | [`words`] | names and numbers in few characters, safe to print |
//! | [`html`] | text for HTML and SVG |
//! | [`files`] | files that are written whole or not at all |
//! | [`output`] | standard output and standard error |
//! | [`failure`] | why a command stops, and its exit status |
//! | [`interrupt`] | SIGINT and SIGTERM |
//! | [`shell`] | completions and manual pages |
//! | [`values`] | values of flags from their text |
//! | [`machine`] | where and when a report was made |

pub mod failure;
pub mod files;
pub mod html;
pub mod interrupt;
pub mod machine;
pub mod output;
pub mod shell;
pub mod table;
pub mod values;
pub mod words;
