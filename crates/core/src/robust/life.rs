//! The life word of a slot: which participant has the slot, and whether it lives.
//!
//! # State
//! | half | bits | meaning |
//! |---|---|---|
//! | low | all | [`LIFE_FREE`], [`LIFE_DEAD`], or [`LIFE_ALIVE`] and the participant's number as the machine knows it, or [`LIFE_PREPARED`] |
//! | high | 31..14 | the participant's process, by a number that the platform gives ([`LAST_PROCESS`]) |
//! | high | 13..0 | generation |
//!
//! The machine changes the low half alone, when the participant ends (DEATH-MARK). Everybody
//! else changes both halves at once.
//!
//! # Protocol
//! The participants that have one slot after another are its *tenants*.
//!
//! ```text
//!              take: generation g
//!      ┌──────────────────────────────┐
//!      │                              ▼
//!   FREE, g ◀───── vacate ─────── ALIVE, g
//!      │                              │ the tenant ends, or somebody finds that it has ended
//!      └─────────── retire ───────▶ DEAD, g ── prepare ──▶ PREPARED, g ── take ──▶ ALIVE, g + 1
//!                                      ▲                        │
//!                                      └─ the preparing one ends┘
//! ```
//!
//! A newcomer that takes the slot of a dead tenant *prepares* it first: it erases the claims of
//! the dead one. Those are void while nobody lives in the slot. Without the preparation they
//! would count as the newcomer's from the moment in which it lives until it has erased them,
//! however long it is stopped in between.
//!
//! A lock's word has 28 bits for its owner, and names it by slot and generation only. So all
//! tenants of one slot share a *name* until one of them dies, and threads that come and go do
//! not wear the slot out. When a slot has come to the last generation, nobody takes it any more.
//! It may begin with generation 0 again when no lock names it: somebody
//! [prepares](Life::prepared) it, looks for its names in all locks and erases them.
//!
//! Process and number tell the tenants of one generation apart. Whoever watches a tenant
//! compares all 64 bits.
//!
//! # Invariants
//! - **LIFE-DEAD-NAME** The tenant that slot and generation name is *dead* if the slot's life
//!   word is dead or prepared, or has another generation. No tenant bears a dead name again.
//! - **LIFE-FREE-NAME** A name is not dead because its slot is free: its tenant has left, and
//!   holds nothing; the next tenant may bear the name in the next moment. Whoever read the name
//!   in a word reads the word again. If the name still stands there, no tenant has put it there.
//!   Then the reader *retires* the slot, from free to dead: that ends the name, or fails because
//!   somebody has come.

use super::word::{GENERATION_BITS, Identity, LAST_GENERATION};

/// The low half of a free slot: nobody has it, and nobody died in it.
pub const LIFE_FREE: u32 = 0;
/// The bit of a living tenant; the lower 30 bits are its number as the machine knows it.
pub const LIFE_ALIVE: u32 = 1 << 31;
/// The low half of a slot whose tenant has died.
pub const LIFE_DEAD: u32 = 0xc000_0000;
/// The bit beside the number of a living tenant which says that somebody looks whether that
/// has ended. It means nothing to the machine and to everybody else.
pub const LIFE_DOUBTED: u32 = 1 << 30;
/// The mask of the number of a living tenant.
pub const LIFE_NUMBER: u32 = 0x3fff_ffff;
/// The value in place of a number, which no thread has, while this process erases what the dead
/// tenants of the slot have left. Nobody has the slot then.
pub const LIFE_PREPARED: u32 = LIFE_NUMBER;
/// The largest number of a process; 0 is the number of nobody.
pub const LAST_PROCESS: u32 = (1 << (32 - GENERATION_BITS)) - 1;

/// A value of a life word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life(pub u64);

impl Life {
    /// Builds the life word of a living tenant with this number, of this process.
    #[must_use]
    pub const fn alive(generation: u32, process: u32, number: u32) -> Life {
        let high = (process & LAST_PROCESS) << GENERATION_BITS | (generation & LAST_GENERATION);
        Life((high as u64) << 32 | (LIFE_ALIVE | (number & LIFE_NUMBER)) as u64)
    }

    /// Returns the low half.
    #[must_use]
    pub const fn life(self) -> u32 {
        self.0 as u32
    }

    /// Returns the high half.
    #[must_use]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the generation: how many tenants of the slot have died.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.high() & LAST_GENERATION
    }

    /// Returns the number of the tenant's process; 0: nobody has the slot.
    #[must_use]
    pub const fn process(self) -> u32 {
        self.high() >> GENERATION_BITS
    }

    /// Tells whether a living tenant has the slot, or somebody prepares it.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        self.life() & LIFE_NUMBER != 0
    }

    /// Tells whether somebody prepares the slot, which nobody has.
    #[must_use]
    pub const fn is_prepared(self) -> bool {
        self.life() & LIFE_NUMBER == LIFE_PREPARED
    }

    /// Tells whether a living tenant has the slot.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        self.is_taken() && !self.is_prepared()
    }

    /// Tells whether nobody has the slot, and its last tenant has left it in order.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.life() == LIFE_FREE
    }

    /// Returns the name by which locks know the tenant, given the number of the slot; `None` if
    /// no living tenant has it.
    #[must_use]
    pub const fn identity(self, slot: u32) -> Option<Identity> {
        if self.is_alive() { Identity::new(slot, self.generation()) } else { None }
    }

    /// Returns what a participant that takes this slot makes of its life word; `None` if somebody
    /// has the slot, or it is worn out.
    #[must_use]
    pub fn taken_by(self, process: u32, number: u32) -> Option<Life> {
        if self.is_taken() || number & LIFE_NUMBER == 0 {
            return None;
        }
        let is_left = self.is_free() || fault!(shared_death_keeps_the_generation);
        let generation = self.generation() + if is_left { 0 } else { 1 };
        if generation > LAST_GENERATION {
            return None;
        }
        Some(Life::alive(generation, process, number))
    }

    /// Tells whether nobody has the slot, and nobody can take it: all generations are used.
    #[must_use]
    pub const fn is_worn_out(self) -> bool {
        !self.is_taken() && !self.is_free() && self.generation() == LAST_GENERATION
    }

    /// Returns what a process makes of the life word of a dead tenant while it erases what that
    /// has left.
    #[must_use]
    pub const fn prepared(self, process: u32) -> Life {
        Life::alive(self.generation(), process, LIFE_PREPARED)
    }

    /// Tells whether somebody prepares this worn-out slot: erases the names of its tenants.
    #[must_use]
    pub const fn is_scrubbed(self) -> bool {
        self.is_prepared() && self.generation() == LAST_GENERATION
    }

    /// Returns the life word after this tenant has died.
    #[must_use]
    pub const fn dead(self) -> Life {
        Life((self.high() as u64) << 32 | LIFE_DEAD as u64)
    }

    /// Builds the life word of a dead tenant of this generation, of which nothing else is known.
    #[must_use]
    pub const fn ended(generation: u32) -> Life {
        Life((generation as u64) << 32).dead()
    }

    /// Returns the life word after this tenant has left.
    #[must_use]
    pub const fn free(self) -> Life {
        Life((self.generation() as u64) << 32)
    }

    /// Returns the life word of the same tenant while somebody looks whether it has ended.
    #[must_use]
    pub const fn doubted(self) -> Life {
        Life(self.0 | LIFE_DOUBTED as u64)
    }

    /// Returns the life word of the same tenant while nobody looks.
    #[must_use]
    pub const fn trusted(self) -> Life {
        if self.is_taken() { Life(self.0 & !(LIFE_DOUBTED as u64)) } else { self }
    }
}
