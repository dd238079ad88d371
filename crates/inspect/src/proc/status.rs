//! The fields of `/proc/PID/status` that matter here.

use std::collections::HashMap;
use std::io;

/// The file, as pairs of a name and the text after the colon.
#[derive(Clone, Debug, Default)]
pub struct StatusFile {
    fields: HashMap<String, String>,
}

impl StatusFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// What the system says: the process or thread has ended.
    pub fn read(path: &str) -> io::Result<StatusFile> {
        Ok(StatusFile::parse(&String::from_utf8_lossy(&std::fs::read(path)?)))
    }

    /// Parses the text of such a file.
    #[must_use]
    pub fn parse(text: &str) -> StatusFile {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        StatusFile { fields: pairs.map(|(n, v)| (n.to_owned(), v.trim().to_owned())).collect() }
    }

    /// Returns one field as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// Returns the first number of a field.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.split_whitespace().next()?.parse().ok()
    }

    /// Returns the thread's number in the innermost PID namespace that it is in: what it calls
    /// itself, and what it writes into the locks it takes.
    #[must_use]
    pub fn own_number(&self) -> Option<u32> {
        self.text("NSpid")?.split_whitespace().last()?.parse().ok()
    }

    /// Returns whether the thread is deeper in PID namespaces than the reader.
    #[must_use]
    pub fn nested(&self) -> bool {
        self.text("NSpid").is_some_and(|all| all.split_whitespace().count() > 1)
    }

    /// Returns the signals for which the process has handlers, a bit each, the lowest for signal 1.
    #[must_use]
    pub fn caught(&self) -> Option<u64> {
        u64::from_str_radix(self.text("SigCgt")?, 16).ok()
    }

    /// Returns how often the thread has been taken off a processor, of its own will and otherwise:
    /// one that has not run in between shows the same pair.
    #[must_use]
    pub fn switches(&self) -> Option<(u64, u64)> {
        Some((self.number("voluntary_ctxt_switches")?, self.number("nonvoluntary_ctxt_switches")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let status = StatusFile::parse(
            "Name:\todd: name\nTgid:\t12\nNSpid:\t900\t12\nUid:\t1000\t1001\t1000\t1000\n\
             voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\nnonsense\n",
        );
        assert_eq!(status.text("Name"), Some("odd: name"));
        assert_eq!(status.number("Uid"), Some(1000));
        assert_eq!(status.own_number(), Some(12));
        assert!(status.nested());
        assert_eq!(status.switches(), Some((5, 6)));
        assert_eq!(status.number("Absent"), None);
        assert!(!StatusFile::parse("NSpid:\t7\n").nested());
    }
}
