//! The decisions of an execution: replayed from the front, extended at the
//! end, and advanced like an odometer until all have been tried.

use crate::fingerprint::Random;

#[derive(Clone, Copy, Debug)]
struct Branch {
    choice: u16,
    of: u16,
}

/// How a random search leans: the chance, of 256, to take the first option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lean {
    /// Takes each option with the same chance.
    Even,
    /// Takes the first one with this chance: it is what mostly happens.
    First(u8),
}

/// The decisions of the execution in progress.
#[derive(Default, Debug)]
pub(crate) struct Choices {
    branches: Vec<Branch>,
    at: usize,
    random: Option<Random>,
}

impl Choices {
    /// Has the next execution make these decisions, then take the first option always.
    pub(crate) fn replay(choices: &[u16]) -> Self {
        let branches = choices.iter().map(|&choice| Branch { choice, of: 0 }).collect();
        Choices { branches, at: 0, random: None }
    }

    /// Has the next execution decide by chance.
    pub(crate) fn random(seed: u64) -> Self {
        Choices { branches: Vec::new(), at: 0, random: Some(Random(seed)) }
    }

    /// Returns how many decisions were made.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns how many the next execution makes as they are noted, after
    /// [`advance`](Self::advance).
    pub(crate) fn planned(&self) -> usize {
        self.branches.len()
    }

    /// Goes back: the next decision is the one after so many.
    pub(crate) fn go_back(&mut self, decisions: usize) {
        self.at = decisions;
    }

    /// Tells whether the execution has left the path of an earlier one.
    pub(crate) fn fresh(&self) -> bool {
        self.at == self.branches.len()
    }

    /// Decides between `of` options, at least one; `None` if the execution does
    /// not follow the path it followed before.
    pub(crate) fn choose(&mut self, of: usize, lean: Lean) -> Option<usize> {
        debug_assert!(of > 0);
        if of == 1 {
            return Some(0);
        }
        let of = u16::try_from(of).ok()?;
        if let Some(branch) = self.branches.get_mut(self.at) {
            if branch.of == 0 {
                // A schedule that came from outside.
                branch.of = of;
            }
            if branch.of != of || branch.choice >= of {
                return None;
            }
            self.at += 1;
            return Some(usize::from(branch.choice));
        }
        let choice = match &mut self.random {
            None => 0,
            Some(random) => match lean {
                Lean::First(chance) if random.below(256) < usize::from(chance) => 0,
                Lean::First(_) => 1 + random.below(usize::from(of) - 1),
                Lean::Even => random.below(usize::from(of)),
            },
        };
        self.branches.push(Branch { choice: choice as u16, of });
        self.at += 1;
        Some(choice)
    }

    /// Goes back to the last decision with an option left, and takes it. Returns false when there
    /// is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.branches.truncate(self.at);
        self.at = 0;
        while let Some(last) = self.branches.last_mut() {
            if last.choice + 1 < last.of {
                last.choice += 1;
                return true;
            }
            self.branches.pop();
        }
        false
    }

    /// Returns the decisions made so far.
    pub(crate) fn made(&self) -> Vec<u16> {
        self.branches[..self.at].iter().map(|b| b.choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_comes_once() {
        let mut choices = Choices::default();
        let mut seen = Vec::new();
        loop {
            let a = choices.choose(2, Lean::Even).expect("follows");
            // The number of later decisions may depend on earlier ones.
            let b = if a == 0 { choices.choose(3, Lean::Even).expect("follows") } else { 9 };
            seen.push((a, b));
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 9)]);
    }

    #[test]
    fn a_path_that_changes_under_a_replay_is_noticed() {
        let mut choices = Choices::default();
        choices.choose(2, Lean::Even);
        choices.choose(2, Lean::Even);
        assert!(choices.advance());
        assert_eq!(choices.choose(2, Lean::Even), Some(0));
        assert_eq!(choices.choose(3, Lean::Even), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_decisions() {
        let run = |seed| {
            let mut choices = Choices::random(seed);
            (0..50).map(|_| choices.choose(4, Lean::First(128)).expect("free")).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
