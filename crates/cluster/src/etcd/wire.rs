//! Transactions of etcd and their answers, and both as the JSON of its gateway: base64 for bytes, text
//! for numbers of 64 bits.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// A range of keys: one, or all that begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Keys {
    One(String),
    Prefix(String),
}

impl Keys {
    /// Returns the first key and the first one behind the range; `None` for one key.
    ///
    /// A comparison over a range without keys holds, so that a wrong end would let everybody in: the
    /// model has a variant that does.
    pub(crate) fn bounds(&self) -> (&str, Option<Vec<u8>>) {
        match self {
            Keys::One(key) => (key, None),
            Keys::Prefix(prefix) => (prefix, Some(end_of(prefix))),
        }
    }

    #[cfg(test)]
    pub(crate) fn contains(&self, key: &str) -> bool {
        let (first, end) = self.bounds();
        match end {
            None => key == first,
            Some(end) => key >= first && (end == [0] || key.as_bytes() < end.as_slice()),
        }
    }
}

/// Returns the first key behind those that begin with `prefix`; `[0]`, etcd's word for no end, where
/// there is none.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    #[cfg(test)]
    if crate::wrong::broken(crate::wrong::Broken::WrongRangeEnd) {
        return end;
    }
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

/// A condition of a transaction, over each key of a range; true over none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    /// No such key is there.
    Absent(Keys),
    /// The key was created at this revision and is there.
    CreatedAt(String, i64),
    /// All were created after this revision.
    CreatedAfter(Keys, i64),
    /// The key was last changed at this revision and is there.
    ChangedAt(String, i64),
    /// The key is there and has this value.
    Is(String, String),
}

/// Keys to be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Get {
    pub(crate) keys: Keys,
    /// Only those created at this revision or before; 0: all.
    pub(crate) created_until: i64,
    /// The most keys, those created last first; 0: all, those created first first.
    pub(crate) latest: u32,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Writes a key. Lease 0: without one.
    Put {
        key: String,
        value: String,
        lease: i64,
    },
    Delete(Keys),
    Get(Get),
    Txn(Txn),
}

/// A transaction: conditions, and what is done if all hold or if one does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Txn {
    pub(crate) when: Vec<Compare>,
    pub(crate) then: Vec<Op>,
    pub(crate) otherwise: Vec<Op>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    pub(crate) created: i64,
    pub(crate) changed: i64,
    pub(crate) lease: i64,
}

/// The answer to one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Put,
    Delete(i64),
    Get(Vec<Pair>),
    Txn(Answer),
}

/// The answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    pub(crate) revision: i64,
    pub(crate) succeeded: bool,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Op {
    pub(crate) fn put(key: &str, value: String, lease: i64) -> Op {
        Op::Put { key: key.to_owned(), value, lease }
    }

    pub(crate) fn delete(key: &str) -> Op {
        Op::Delete(Keys::One(key.to_owned()))
    }

    pub(crate) fn get(key: &str) -> Op {
        Op::Get(Get { keys: Keys::One(key.to_owned()), created_until: 0, latest: 0 })
    }

    fn to_json(&self) -> Value {
        match self {
            Op::Put { key, value, lease } => {
                json!({"request_put": {"key": encode(key), "value": encode(value), "lease": lease.to_string()}})
            }
            Op::Delete(keys) => json!({"request_delete_range": range(keys)}),
            Op::Get(get) => json!({"request_range": get.to_json()}),
            Op::Txn(txn) => json!({"request_txn": txn.to_json()}),
        }
    }
}

impl Get {
    pub(crate) fn all(prefix: &str) -> Get {
        Get { keys: Keys::Prefix(prefix.to_owned()), created_until: 0, latest: 0 }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut json = range(&self.keys);
        json["sort_target"] = "CREATE".into();
        json["sort_order"] = if self.latest == 0 { "ASCEND" } else { "DESCEND" }.into();
        if self.latest != 0 {
            json["limit"] = self.latest.to_string().into();
        }
        if self.created_until != 0 {
            json["max_create_revision"] = self.created_until.to_string().into();
        }
        json
    }
}

impl Txn {
    pub(crate) fn to_json(&self) -> Value {
        let all = |ops: &[Op]| ops.iter().map(Op::to_json).collect::<Vec<_>>();
        let compare: Vec<Value> = self.when.iter().map(Compare::to_json).collect();
        json!({"compare": compare, "success": all(&self.then), "failure": all(&self.otherwise)})
    }
}

impl Compare {
    fn to_json(&self) -> Value {
        if let Compare::Is(key, value) = self {
            let mut json = range(&Keys::One(key.clone()));
            json["target"] = "VALUE".into();
            json["result"] = "EQUAL".into();
            json["value"] = encode(value).into();
            return json;
        }
        let (keys, target, result, revision) = match self {
            Compare::Absent(keys) => (keys.clone(), "create", "EQUAL", 0),
            Compare::CreatedAt(key, at) => (Keys::One(key.clone()), "create", "EQUAL", *at),
            Compare::CreatedAfter(keys, at) => (keys.clone(), "create", "GREATER", *at),
            Compare::ChangedAt(key, at) => (Keys::One(key.clone()), "mod", "EQUAL", *at),
            Compare::Is(..) => unreachable!("a comparison of values, which returned above"),
        };
        let mut json = range(&keys);
        json["target"] = target.to_uppercase().into();
        json["result"] = result.into();
        json[format!("{target}_revision")] = revision.to_string().into();
        json
    }
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Returns the members `key` and, of a prefix, `range_end` of a request.
pub(crate) fn range(keys: &Keys) -> Value {
    let (first, end) = keys.bounds();
    let mut json = Map::new();
    json.insert("key".into(), encode(first).into());
    if let Some(end) = end {
        json.insert("range_end".into(), encode(end).into());
    }
    Value::Object(json)
}

/// Returns a number that the gateway has written as text; 0 where it left it out, as it does with zeroes.
pub(crate) fn number(json: &Value) -> i64 {
    json.as_i64().or_else(|| json.as_str()?.parse().ok()).unwrap_or(0)
}

fn bytes(json: &Value) -> Option<Vec<u8>> {
    match json {
        Value::Null => Some(Vec::new()),
        json => STANDARD.decode(json.as_str()?).ok(),
    }
}

impl Pair {
    pub(crate) fn from_json(json: &Value) -> Option<Pair> {
        Some(Pair {
            key: String::from_utf8_lossy(&bytes(&json["key"])?).into_owned(),
            value: bytes(&json["value"])?,
            created: number(&json["create_revision"]),
            changed: number(&json["mod_revision"]),
            lease: number(&json["lease"]),
        })
    }
}

/// Returns the pairs of the answer to a request for a range.
pub(crate) fn pairs(json: &Value) -> Option<Vec<Pair>> {
    match &json["kvs"] {
        Value::Null => Some(Vec::new()),
        kvs => kvs.as_array()?.iter().map(Pair::from_json).collect(),
    }
}

impl Answer {
    /// Reads the answer to a transaction; `None` if it is none.
    pub(crate) fn from_json(json: &Value) -> Option<Answer> {
        let revision = number(&json["header"]["revision"]);
        let outcomes = match &json["responses"] {
            Value::Null => Vec::new(),
            responses => responses
                .as_array()?
                .iter()
                .map(|response| {
                    if let Some(get) = response.get("response_range") {
                        Some(Outcome::Get(pairs(get)?))
                    } else if let Some(delete) = response.get("response_delete_range") {
                        Some(Outcome::Delete(number(&delete["deleted"])))
                    } else if let Some(txn) = response.get("response_txn") {
                        Some(Outcome::Txn(Answer::from_json(txn)?))
                    } else {
                        response.get("response_put").map(|_| Outcome::Put)
                    }
                })
                .collect::<Option<_>>()?,
        };
        let succeeded = json["succeeded"].as_bool().unwrap_or(false);
        Some(Answer { revision, succeeded, outcomes })
    }

    /// Returns what the step with this number read; nothing if it read nothing.
    pub(crate) fn read(&self, step: usize) -> &[Pair] {
        match self.outcomes.get(step) {
            Some(Outcome::Get(pairs)) => pairs,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_behind_all_that_begins_with_it() {
        let keys = Keys::Prefix("a/q/".into());
        assert_eq!(keys.bounds(), ("a/q/", Some(b"a/q0".to_vec())));
        for (key, inside) in
            [("a/q/", true), ("a/q/zz", true), ("a/q", false), ("a/q0", false), ("a/", false)]
        {
            assert_eq!(keys.contains(key), inside, "{key}");
        }
        assert_eq!(end_of(""), [0]);
    }

    #[test]
    fn an_answer_is_read_with_what_the_gateway_leaves_out() {
        let json = serde_json::from_str(
            r#"{"header":{"revision":"12"},"responses":[
                {"response_range":{"kvs":[{"key":"YQ==","create_revision":"5","mod_revision":"7"}]}},
                {"response_range":{}},{"response_delete_range":{"deleted":"2"}},
                {"response_txn":{"succeeded":true}}]}"#,
        );
        let answer = Answer::from_json(&json.expect("JSON")).expect("an answer");
        assert!(!answer.succeeded);
        assert_eq!(answer.revision, 12);
        assert_eq!(answer.read(0)[0].key, "a");
        assert_eq!(answer.read(0)[0].created, 5);
        assert_eq!(answer.read(1), []);
        assert_eq!(answer.outcomes[2], Outcome::Delete(2));
        assert!(Answer::from_json(&json!({"responses": [{"other": 1}]})).is_none());
    }
}
