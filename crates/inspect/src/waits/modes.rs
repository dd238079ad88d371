//! The ways in which a lock is held and wanted, and which of the ones stand in the way of the others.

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HoldMode {
    /// It has the lock alone.
    Alone,
    /// It reads, and alone has the right to become the writer: others read beside it.
    Upgradable,
    /// It reads, and so may others.
    Shared,
}

/// How a thread wants a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitMode {
    /// It wants the lock alone.
    Alone,
    /// It wants to read, and to have the right to become the writer.
    Upgradable,
    /// It wants to read.
    Shared,
    /// It lets nobody in any more, and waits until those who read have gone.
    Closing,
}

impl WaitMode {
    /// All ways there are.
    pub const ALL: [WaitMode; 4] =
        [WaitMode::Alone, WaitMode::Upgradable, WaitMode::Shared, WaitMode::Closing];

    /// Tells whether the thread wants to share the lock with others.
    #[must_use]
    pub fn is_shared(self) -> bool {
        matches!(self, WaitMode::Upgradable | WaitMode::Shared)
    }
}

impl HoldMode {
    /// Tells whether who holds the lock so shares it with others.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self != HoldMode::Alone
    }

    /// Tells whether a thread that wants the lock so has to wait for one that holds it.
    #[must_use]
    pub fn bars(self, wanted: WaitMode) -> bool {
        match wanted {
            WaitMode::Alone => true,
            WaitMode::Upgradable => self != HoldMode::Shared,
            WaitMode::Shared => self == HoldMode::Alone,
            // It has what keeps writers and upgradable readers away.
            WaitMode::Closing => self == HoldMode::Shared,
        }
    }

    /// Tells whether two threads can hold a lock at once, one so and one in the other way.
    #[must_use]
    pub fn agrees(self, other: HoldMode) -> bool {
        match (self, other) {
            (HoldMode::Alone, _) | (_, HoldMode::Alone) => false,
            (HoldMode::Upgradable, HoldMode::Upgradable) => false,
            (HoldMode::Upgradable | HoldMode::Shared, _) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgradable_reader_bars_writers_and_its_like_and_no_reader() {
        let barred = |mode: HoldMode| WaitMode::ALL.map(|wanted| mode.bars(wanted));
        assert_eq!(barred(HoldMode::Alone), [true, true, true, false]);
        assert_eq!(barred(HoldMode::Upgradable), [true, true, false, false]);
        assert_eq!(barred(HoldMode::Shared), [true, false, false, true]);
    }
}
