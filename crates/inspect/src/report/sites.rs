//! The parts of stacks in a lock's waiting or holding, as places and their callers.

use super::model::{ReportSite, SiteCaller, percent};
use super::names::Names;
use super::places::Places;
use crate::stack::{Frame, Stack};
use lockstead_ledger::Ledger;
use lockstead_ledger::shares::Shares;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What places have their parts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SharesOf {
    /// The time that they took altogether.
    Time,
    /// Places are weighed by how often it happened.
    Count,
}

impl SharesOf {
    fn of(self, count: u64, total_ns: u64) -> u64 {
        match self {
            SharesOf::Time => total_ns,
            SharesOf::Count => count,
        }
    }
}

/// Callers of a place that are told apart.
const CALLERS: usize = 16;

/// The part of one stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteShare {
    /// Its id; 0: all stacks for which there was no room.
    pub(super) stack: u32,
    pub(super) count: u64,
    pub(super) total: u64,
}

/// The parts of stacks, added up.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareSum(HashMap<u32, SiteShare>);

impl ShareSum {
    /// Adds what a ledger has.
    pub(super) fn add_all(&mut self, ledger: &Ledger<'_>, shares: &Shares) {
        for share in ledger.shares(shares) {
            let (stack, _, count, total) = share.read();
            self.add(SiteShare { stack, count, total });
        }
    }

    /// Adds to the part of the same stack.
    pub(super) fn add(&mut self, share: SiteShare) {
        let none = SiteShare { stack: share.stack, count: 0, total: 0 };
        let sum = self.0.entry(share.stack).or_insert(none);
        sum.count = sum.count.saturating_add(share.count);
        sum.total = sum.total.saturating_add(share.total);
    }

    /// Returns the parts, in no particular order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &SiteShare> {
        self.0.values()
    }
}

/// Returns the places of these stacks, the largest part first; what stands for all others last.
pub(super) fn sites(
    ledger: &Ledger<'_>,
    places: &Places,
    names: &mut dyn Names,
    shares: &ShareSum,
    by: SharesOf,
) -> Vec<ReportSite> {
    let mut shares: Vec<&SiteShare> = shares.parts().collect();
    // So the first stack of each place is that with the largest part.
    shares.sort_by_key(|share| {
        (Reverse((by.of(share.count, share.total), share.count)), share.stack)
    });
    let mut sites = Vec::new();
    for share in shares {
        add_site(&mut sites, site_of(ledger, places, names, share));
    }
    share_out(&mut sites, by);
    sites
}

/// Adds a place, or its part to the same one.
pub(super) fn add_site(to: &mut Vec<ReportSite>, site: ReportSite) {
    let same = |mine: &&mut ReportSite| {
        (mine.others, &mine.site, &mine.through) == (site.others, &site.site, &site.through)
    };
    let Some(mine) = to.iter_mut().find(same) else {
        to.push(site);
        return;
    };
    mine.count = mine.count.saturating_add(site.count);
    mine.total_ns = mine.total_ns.saturating_add(site.total_ns);
    for caller in site.callers {
        match mine.callers.iter_mut().find(|known| known.site == caller.site) {
            Some(known) => add_caller(known, &caller),
            None => mine.callers.push(caller),
        }
    }
}

fn add_caller(to: &mut SiteCaller, caller: &SiteCaller) {
    to.count = to.count.saturating_add(caller.count);
    to.total_ns = to.total_ns.saturating_add(caller.total_ns);
}

/// Orders places and their callers by their parts, and says those.
pub(super) fn share_out(sites: &mut [ReportSite], by: SharesOf) {
    let part = |site: &ReportSite| by.of(site.count, site.total_ns);
    sites.sort_by_key(|site| (site.others, Reverse((part(site), site.count))));
    let whole = sites.iter().fold(0, |sum: u64, site| sum.saturating_add(part(site)));
    for site in sites {
        site.share_percent = percent(part(site), whole);
        let part = |caller: &SiteCaller| by.of(caller.count, caller.total_ns);
        site.callers.sort_by_key(|caller| (caller.others, Reverse((part(caller), caller.count))));
        if site.callers.len() > CALLERS {
            let rest = site.callers.split_off(CALLERS - 1);
            site.callers.push(rest.iter().fold(others(), |mut others, caller| {
                add_caller(&mut others, caller);
                others
            }));
        }
        for caller in &mut site.callers {
            caller.share_percent = percent(part(caller), whole);
        }
    }
}

fn others() -> SiteCaller {
    SiteCaller {
        site: "other callers".into(),
        function: None,
        file: None,
        line: None,
        count: 0,
        total_ns: 0,
        share_percent: 0.0,
        others: true,
        stack: None,
    }
}

/// Returns the place of one stack. That of the C library, where it has made the call by itself.
pub(super) fn site_of(
    ledger: &Ledger<'_>,
    places: &Places,
    names: &mut dyn Names,
    share: &SiteShare,
) -> ReportSite {
    let others = share.stack == 0;
    let stack = stack(ledger, names, share.stack);
    let visible: Vec<&Frame> = stack.iter().flat_map(Stack::visible).collect();
    let place = places.of(share.stack, &visible);
    let own = stack.iter().flat_map(|stack| &stack.frames).find(|frame| !frame.is_lockstead());
    let frame = place.map(|place| visible[place.at]).or(own);
    let above = place.map_or(&[][..], |place| &visible[place.at + 1..]);
    let caller = above.iter().find(|frame| !frame.is_libc());
    ReportSite {
        site: match frame {
            Some(frame) => frame.site(),
            None => "other places".into(),
        },
        function: frame.and_then(|frame| frame.function.clone()),
        file: frame.and_then(|frame| frame.file.clone()),
        line: frame.and_then(|frame| frame.line),
        count: share.count,
        total_ns: share.total,
        share_percent: 0.0,
        others,
        through: place.and_then(|place| visible[place.through?].called()),
        callers: caller
            .map(|caller| SiteCaller {
                site: caller.site(),
                function: caller.function.clone(),
                file: caller.file.clone(),
                line: caller.line,
                count: share.count,
                total_ns: share.total,
                share_percent: 0.0,
                others: false,
                stack: stack.clone(),
            })
            .into_iter()
            .collect(),
        stack,
    }
}

/// Returns the stack with this id, with names.
pub(super) fn stack(ledger: &Ledger<'_>, names: &mut dyn Names, id: u32) -> Option<Stack> {
    let stored = ledger.stack(id)?;
    let returns: Vec<u64> = stored.returns().collect();
    Some(names.stack(&returns, stored.end))
}
