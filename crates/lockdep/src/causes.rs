//! What was found already.

use crate::types::Level;
use alloc::boxed::Box;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The causes of all findings, with the highest level of each.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    known: HashMap<Box<[u32]>, Level>,
}

impl Causes {
    /// Returns whether a cause is news at this level, and takes note of it: it is news once. A
    /// cause is the classes it is about and the signal, if it is about one.
    pub(crate) fn news(
        &mut self,
        classes: impl Iterator<Item = u32>,
        signal: Option<u8>,
        level: Level,
    ) -> bool {
        let mut cause: Vec<u32> = classes.collect();
        cause.sort_unstable();
        cause.dedup();
        cause.push(signal.map_or(0, u32::from));
        match self.known.get_mut(&*cause) {
            Some(known) if *known >= level => false,
            Some(known) => {
                *known = level;
                true
            }
            None => {
                self.known.insert(cause.into(), level);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_news_once_at_each_level_upwards() {
        let mut causes = Causes::default();
        let mut news =
            |classes: &[u32], signal, level| causes.news(classes.iter().copied(), signal, level);
        assert!(news(&[1, 2], None, Level::Order));
        assert!(!news(&[2, 1, 2], None, Level::Order), "the same classes");
        assert!(news(&[1, 2], None, Level::Potential));
        assert!(!news(&[1, 2], None, Level::Order), "less than is known");
        assert!(news(&[1, 2, 3], None, Level::Order));
        assert!(news(&[1, 2], Some(3), Level::Order), "about a signal");
        assert!(!news(&[1, 2], Some(3), Level::Order));
    }
}
