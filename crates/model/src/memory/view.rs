//! What one thread, or one store, knows of all the others.

/// Most threads of a model, and the one that sets it up.
pub(crate) const MAX_THREADS: usize = 8;

/// Most locations that an execution touches.
pub(super) const MAX_LOCATIONS: usize = 96;

/// What a thread or a store knows of others.
#[derive(Debug)]
pub(crate) struct MemoryView {
    /// Steps of each thread that happened before.
    pub(crate) clock: [u16; MAX_THREADS],
    /// Tells from where on the floors are zero: few models have as many locations as there may be, and views
    /// are copied and joined at almost every step.
    used: usize,
    /// Place of the oldest readable store, by location.
    pub(super) floor: [u32; MAX_LOCATIONS],
}

impl Clone for MemoryView {
    fn clone(&self) -> Self {
        let mut copy = MemoryView::NEW;
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, other: &Self) {
        self.clock = other.clock;
        self.floor[..other.used].copy_from_slice(&other.floor[..other.used]);
        if let Some(rest) = self.floor.get_mut(other.used..self.used) {
            rest.fill(0);
        }
        self.used = other.used;
    }
}

impl Default for MemoryView {
    fn default() -> Self {
        MemoryView::NEW
    }
}

impl MemoryView {
    pub(super) const NEW: MemoryView =
        MemoryView { clock: [0; MAX_THREADS], used: 0, floor: [0; MAX_LOCATIONS] };

    pub(super) fn raise(&mut self, location: usize, to: u32) {
        let floor = &mut self.floor[location];
        *floor = to.max(*floor);
        self.used = self.used.max(location + 1);
    }

    pub(super) fn join(&mut self, other: &MemoryView) {
        for (mine, theirs) in self.clock.iter_mut().zip(&other.clock) {
            *mine = (*mine).max(*theirs);
        }
        self.know(other);
    }

    /// Adopts what `other` knows of locations, without anything having happened before.
    pub(super) fn know(&mut self, other: &MemoryView) {
        for (mine, theirs) in self.floor.iter_mut().zip(&other.floor[..other.used]) {
            *mine = (*mine).max(*theirs);
        }
        self.used = self.used.max(other.used);
    }

    /// Tells whether `other` knows everything that this one knows.
    pub(super) fn within(&self, other: &MemoryView) -> bool {
        self.clock.iter().zip(&other.clock).all(|(a, b)| a <= b)
            && self.floor[..self.used].iter().zip(&other.floor).all(|(a, b)| a <= b)
    }
}
