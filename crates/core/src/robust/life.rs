//! The life word of a slot: who sits there, whether they live, and how one tenant follows
//! another.
//!
//! # State
//! | half | bits | meaning |
//! |---|---|---|
//! | low | all | [`LIFE_FREE`], [`LIFE_DEAD`], or [`LIFE_ALIVE`] and the tenant's number as the machine knows it, or [`LIFE_PREPARED`] |
//! | high | 31..14 | the tenant's process, by a number that the platform gives ([`LAST_PROCESS`]) |
//! | high | 13..0 | generation |
//!
//! The machine changes the low half alone, when the tenant ends (D1). All else changes both
//! halves at once.
//!
//! # How tenants follow each other
//! ```text
//!              take: generation g
//!      ┌──────────────────────────────┐
//!      │                              ▼
//!   FREE, g ◀───── vacate ─────── ALIVE, g
//!      │                              │ the tenant ends, or is found to have ended
//!      └─────────── retire ───────▶ DEAD, g ── prepare ──▶ PREPARED, g ── take ──▶ ALIVE, g + 1
//!                                      ▲                        │
//!                                      └── who prepares ends ───┘
//! ```
//! Who takes a dead one's slot *prepares* it first: erases the claims that the dead one had made.
//! They are void, since nobody lives there, and would be its own otherwise from the moment in
//! which it lives until it has erased them, however long it is stopped in between.
//!
//! A lock's word names its owner by slot and generation only, for which it has 28 bits. So
//! the tenants of one slot share a *name* until one of them dies, and wear does not come from
//! threads that come and go. Two things follow:
//!
//! - **G1** Who is named by slot and generation is *dead* if the slot's life word says so, or
//!   that somebody prepares the slot, or the slot has another generation. Nobody bears a dead
//!   name again.
//! - **G2** A name is not dead because its slot is free: who bore it has left, and holds
//!   nothing; the next tenant may bear it in the next moment. Who read the name in a word
//!   reads the word again. If the name still stands there, no tenant has put it there, and
//!   the slot is *retired*, from free to dead, first: that ends the name, or fails because
//!   somebody has come.
//!
//! When a slot has come to the last generation, nobody takes it any more. It may begin with
//! generation 0 again when no lock names it: somebody [prepares](Life::prepared) it, looks for
//! its names in all locks and erases them.
//!
//! Who sits in a slot is told apart from everybody who sat there before in the same
//! generation by process and number: whatever watches a tenant compares all 64 bits.

use super::word::{GENERATION_BITS, Identity, LAST_GENERATION};

/// Life word: nobody, and nobody died.
pub const LIFE_FREE: u32 = 0;
/// Life word: the bit of a living one; the lower 30 bits are its number as the
/// machine knows it.
pub const LIFE_ALIVE: u32 = 1 << 31;
/// Life word: the participant has died.
pub const LIFE_DEAD: u32 = 0xc000_0000;
/// Life word: beside the number of a living one, somebody looks whether it has ended. It
/// means nothing to the machine and to everybody else.
pub const LIFE_DOUBTED: u32 = 1 << 30;
/// The number of a living one.
pub const LIFE_NUMBER: u32 = 0x3fff_ffff;
/// In place of a number, which no thread has: this process erases what the dead tenants of the
/// slot have left. Nobody sits there.
pub const LIFE_PREPARED: u32 = LIFE_NUMBER;
/// The largest number of a process; 0 is that of nobody.
pub const LAST_PROCESS: u32 = (1 << (32 - GENERATION_BITS)) - 1;

/// What a slot's life word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life(pub u64);

impl Life {
    /// A tenant with this number, of this process.
    #[must_use]
    pub const fn alive(generation: u32, process: u32, number: u32) -> Life {
        let high = (process & LAST_PROCESS) << GENERATION_BITS | (generation & LAST_GENERATION);
        Life((high as u64) << 32 | (LIFE_ALIVE | (number & LIFE_NUMBER)) as u64)
    }

    /// The low half.
    #[must_use]
    pub const fn life(self) -> u32 {
        self.0 as u32
    }

    /// The high half.
    #[must_use]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// How many tenants have died here before.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.high() & LAST_GENERATION
    }

    /// The process of the tenant; 0: nobody sits here.
    #[must_use]
    pub const fn process(self) -> u32 {
        self.high() >> GENERATION_BITS
    }

    /// Whether somebody sits here and lives, or prepares the slot.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        self.life() & LIFE_NUMBER != 0
    }

    /// Whether somebody is about to make this slot usable, and nobody sits there.
    #[must_use]
    pub const fn is_prepared(self) -> bool {
        self.life() & LIFE_NUMBER == LIFE_PREPARED
    }

    /// Whether somebody sits here and lives.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        self.is_taken() && !self.is_prepared()
    }

    /// Whether nobody sits here, and the last one has left.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.life() == LIFE_FREE
    }

    /// How locks name who sits in the slot of this slot; `None`: nobody that lives.
    #[must_use]
    pub const fn identity(self, slot: u32) -> Option<Identity> {
        if self.is_alive() { Identity::new(slot, self.generation()) } else { None }
    }

    /// What a participant that takes this slot makes of it; `None` if somebody sits
    /// here, or it is worn out.
    #[must_use]
    pub const fn taken_by(self, process: u32, number: u32) -> Option<Life> {
        if self.is_taken() || number & LIFE_NUMBER == 0 {
            return None;
        }
        let generation = self.generation() + if self.is_free() { 0 } else { 1 };
        if generation > LAST_GENERATION {
            return None;
        }
        Some(Life::alive(generation, process, number))
    }

    /// Whether nobody sits here, and nobody can: all generations are used.
    #[must_use]
    pub const fn is_worn_out(self) -> bool {
        !self.is_taken() && !self.is_free() && self.generation() == LAST_GENERATION
    }

    /// What a process makes of this slot, in which somebody has died, while it erases what
    /// that one has left.
    #[must_use]
    pub const fn prepared(self, process: u32) -> Life {
        Life::alive(self.generation(), process, LIFE_PREPARED)
    }

    /// Whether somebody prepares this slot that is worn out: erases the names of its tenants.
    #[must_use]
    pub const fn is_scrubbed(self) -> bool {
        self.is_prepared() && self.generation() == LAST_GENERATION
    }

    /// Of a tenant that has ended here.
    #[must_use]
    pub const fn dead(self) -> Life {
        Life((self.high() as u64) << 32 | LIFE_DEAD as u64)
    }

    /// Of a tenant of this generation that has ended, of which nothing else is known.
    #[must_use]
    pub const fn ended(generation: u32) -> Life {
        Life((generation as u64) << 32).dead()
    }

    /// Of a tenant that has left.
    #[must_use]
    pub const fn free(self) -> Life {
        Life((self.generation() as u64) << 32)
    }

    /// The same tenant, while somebody looks whether it has ended.
    #[must_use]
    pub const fn doubted(self) -> Life {
        Life(self.0 | LIFE_DOUBTED as u64)
    }

    /// The same tenant, while nobody does.
    #[must_use]
    pub const fn trusted(self) -> Life {
        if self.is_taken() { Life(self.0 & !(LIFE_DOUBTED as u64)) } else { self }
    }
}
