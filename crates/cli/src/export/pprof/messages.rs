//! The messages of a profile of pprof.
//!
//! # Source
//! `proto/profile.proto` of github.com/google/pprof: its numbers of fields. Fields that nothing is
//! written to are left out, which the encoding allows.

use prost::Message;

/// A profile. Texts are places in its table, of which the first one is empty.
#[derive(Message)]
pub(super) struct Profile {
    /// What the values of a sample are, in their order.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    /// The stacks with their values.
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    /// The programs and libraries.
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    /// The frames of stacks.
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    /// The functions of frames.
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    /// All texts that others refer to.
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// The time since 1970 at which the run began.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    /// How long the run lasted.
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    /// What is counted between two samples.
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    /// The number of events between two samples.
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    /// What there is to say of the profile as a whole.
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
    /// The type of sample that is shown first.
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

/// What a value is, and its unit.
#[derive(Clone, Copy, Message)]
pub(super) struct ValueType {
    /// What the value is.
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    /// The unit of the value.
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// A stack with its values.
#[derive(Message)]
pub(super) struct Sample {
    /// The ids of its frames, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// The values, one for each type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    /// What else is known of it.
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A fact of a sample.
#[derive(Clone, Copy, Message)]
pub(super) struct Label {
    /// Which fact it is.
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    /// The fact as text.
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
}

/// A program or library.
#[derive(Clone, Copy, Message)]
pub(super) struct Mapping {
    /// Its number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// The path of its file.
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    /// Functions need no look-up: they are in the profile.
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    /// Files need none either.
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    /// Lines need none either.
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    /// Functions that were put into others need none either.
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

/// A frame of stacks.
#[derive(Message)]
pub(super) struct Location {
    /// Its number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// The number of its program or library; 0: none is known.
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    /// The function of the frame.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// The place of a frame.
#[derive(Clone, Copy, Message)]
pub(super) struct Line {
    /// The number of the function.
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    /// The line in its file; 0: not known.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function of the program.
#[derive(Clone, Copy, Message)]
pub(super) struct Function {
    /// Its number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// What it is called.
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    /// What the system calls it.
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    /// The path of its source file.
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
