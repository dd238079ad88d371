//! How long a storm lasts, and how far it is.

use super::limits::MAX_KILLS;
use super::mix::Mix;
use crate::{Error, Session, options};
use std::time::{Duration, Instant};

/// How long it lasts: until the first of what is given has come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Length {
    /// How many workers to kill, 1 to [`MAX_KILLS`].
    pub kills: Option<u64>,
    /// The longest time, if there is one.
    pub time: Option<Duration>,
}

impl Default for Length {
    /// Lets it storm for a minute.
    fn default() -> Self {
        Length { kills: None, time: Some(Duration::from_secs(60)) }
    }
}

/// The longest turn of a storm, where several take turns.
const TURN: Duration = Duration::from_secs(5);

impl Length {
    pub(super) fn check(&self) -> Result<(), Error> {
        options::within("--kills", self.kills.unwrap_or(1), 1..=MAX_KILLS, "")?;
        if self.kills.is_none() && self.time.is_none() {
            return Err(Error::Option {
                option: "--kills",
                given: "no end".into(),
                allowed: "kills, seconds, or both".into(),
            });
        }
        Ok(())
    }
}

/// A turn of one storm among several.
pub(super) struct Course<'a> {
    length: &'a Length,
    begin: Instant,
    /// Kills of the other storms.
    others: u64,
    /// The end of this turn: a moment, and the kills of this storm.
    ends: Option<Instant>,
    enough: u64,
}

impl<'a> Course<'a> {
    /// Returns the turn of a storm that has `own` kills, of several, which began at `begin` and
    /// have so many `kills` together; `None` if all is over. So many, with this one, are still
    /// `to_come` before the first one's next turn, and are to have as much.
    pub(super) fn turn(
        length: &'a Length,
        begin: Instant,
        (to_come, alone): (usize, bool),
        (own, kills): (u64, u64),
    ) -> Option<Self> {
        let others = kills - own;
        let left = length.kills.map(|all| all.saturating_sub(kills));
        let time_left = length.time.map(|all| all.saturating_sub(begin.elapsed()));
        if left == Some(0) || time_left == Some(Duration::ZERO) {
            return None;
        }
        let share = left.map_or(u64::MAX, |left| left.div_ceil(to_come as u64));
        let time = match time_left {
            left if alone => left,
            Some(left) => Some(TURN.min(left / to_come as u32)),
            None => Some(TURN),
        };
        let ends = time.map(|time| Instant::now() + time);
        Some(Course { length, begin, others, ends, enough: own.saturating_add(share) })
    }

    /// Tells whether the turn is over for a storm with so many kills.
    pub(super) fn is_over(&self, kills: u64) -> bool {
        kills >= self.enough || self.ends.is_some_and(|end| Instant::now() >= end)
    }

    pub(super) fn tell(
        &self,
        session: &mut Session<'_>,
        mix: &Mix,
        (kills, noticed, failures): (u64, u64, u64),
    ) {
        let kills = self.others + kills;
        match (self.length.kills, self.length.time) {
            (None, Some(time)) => {
                let what = format!(
                    "seconds; {kills} kills, {noticed} deaths noticed, {failures} failures ({mix})"
                );
                let seconds = self.begin.elapsed().min(time).as_secs();
                session.tell(seconds, time.as_secs().max(1), &what);
            }
            (all, _) => {
                let what = format!("kills, {noticed} deaths noticed, {failures} failures ({mix})");
                session.tell(kills, all.unwrap_or(MAX_KILLS), &what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_without_an_end_is_refused() {
        for (kills, time) in [(None, None), (Some(0), None), (Some(MAX_KILLS + 1), None)] {
            let refused = Length { kills, time }.check().expect_err("no length");
            assert!(refused.to_string().contains("--kills"), "{refused}");
        }
        Length::default().check().expect("a minute");
    }

    #[test]
    fn turns_end_with_their_share_and_all_with_the_last_kill() {
        let length = Length { kills: Some(100), time: None };
        let turn = |to_come, own, kills| {
            Course::turn(&length, Instant::now(), (to_come, false), (own, kills))
        };
        let first = turn(3, 0, 0).expect("there is more");
        assert!(!first.is_over(33) && first.is_over(34));
        let second = turn(2, 7, 50).expect("there is more");
        assert!(!second.is_over(31) && second.is_over(32));
        let last = turn(1, 7, 95).expect("there is more");
        assert!(!last.is_over(11) && last.is_over(12));
        assert!(turn(1, 7, 100).is_none());
    }

    #[test]
    fn turns_end_with_the_time() {
        let length = Length { kills: None, time: Some(Duration::from_secs(3600)) };
        let begin = Instant::now();
        for (alone, ended) in [(true, false), (false, true)] {
            let course = Course::turn(&length, begin, (1, alone), (0, 0));
            let mut course = course.expect("there is more");
            assert!(!course.is_over(u64::MAX - 1));
            // As if five seconds had passed.
            course.ends = course.ends.map(|end| end - TURN);
            assert_eq!(course.is_over(0), ended, "alone: {alone}");
        }
        let over = Length { kills: Some(1), time: Some(Duration::ZERO) };
        assert!(Course::turn(&over, begin, (1, true), (0, 0)).is_none());
    }
}
