//! Verdicts and their rules, as data.

use serde::Serialize;

/// What to do about a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The rule that it follows.
    pub rule: VerdictRule,
    /// The verdict as a sentence, without the part of the time.
    pub text: String,
}

/// The rules of verdicts, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictRule {
    /// The waiting was less than 1 % of the time that threads were not idle.
    Small,
    /// Nothing tells who holds locks of this kind.
    Unseen,
    /// There were too few looks.
    FewLooks,
    /// The holder slept in one call for half of the waiting.
    Asleep,
    /// The holder waited for one other lock for half of the waiting.
    OtherLock,
    /// The holder was ready and had no processor for half of the waiting.
    NoProcessor,
    /// The lock was free for half of the waiting.
    Free,
    /// The holder ran for half of the waiting.
    Running,
    /// Nothing comes to half of the waiting.
    Mixed,
}

impl VerdictRule {
    /// All rules, in the order in which they are tried.
    pub const ALL: [VerdictRule; 9] = [
        VerdictRule::Small,
        VerdictRule::Unseen,
        VerdictRule::FewLooks,
        VerdictRule::Asleep,
        VerdictRule::OtherLock,
        VerdictRule::NoProcessor,
        VerdictRule::Free,
        VerdictRule::Running,
        VerdictRule::Mixed,
    ];

    /// Returns the advice, or what is said instead of one.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            VerdictRule::Small => "not worth fixing",
            VerdictRule::Unseen => "what its holder did cannot be seen",
            VerdictRule::FewLooks => "not looked at often enough to say why",
            VerdictRule::Asleep => "move the call out of the lock",
            VerdictRule::OtherLock => "look at that first",
            VerdictRule::NoProcessor => "run fewer threads, or give them more processors",
            VerdictRule::Free => {
                "take it less often, for waking took longer than what was done under it"
            }
            VerdictRule::Running => "do less under it, or split it",
            VerdictRule::Mixed => {
                "no single cause; to do less under it, or to split it, helps with each"
            }
        }
    }
}
