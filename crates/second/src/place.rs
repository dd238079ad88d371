//! Where threads sleep.

/// A word on which threads sleep.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Narrow(usize),
    Low(usize),
}

impl Place {
    /// Returns the number of the word among those of its size.
    pub(crate) fn number(self) -> usize {
        let (Place::Narrow(number) | Place::Low(number)) = self;
        number
    }

    /// Returns the address by which wake-ups name the word.
    pub(crate) fn address(self) -> usize {
        match self {
            Place::Narrow(number) => 16 * (number + 1) + 8,
            Place::Low(number) => 16 * (number + 1),
        }
    }

    /// Returns the word that has an address, or one half of it.
    pub(crate) fn of(address: usize) -> Self {
        let number = address / 16 - 1;
        if address & 8 == 0 { Place::Low(number) } else { Place::Narrow(number) }
    }
}
