//! What an access to a line does and costs (`line` says what there is, and the invariants).

use super::event::What;
use super::line::{DirectoryLine, LineRequest, LineRight, PendingStore, Went};
use super::task::NOBODY;
use super::time::{Ps, ps};
use super::world::SimWorld;

impl SimWorld {
    pub(crate) fn prepare_lines(&mut self) {
        let lines = self.arena.lines();
        self.lines = (0..lines).map(|_| DirectoryLine::new()).collect();
        self.copies = vec![0; lines * self.stride];
    }

    #[inline]
    fn has_copy(&self, line: usize, core: usize) -> bool {
        self.copies[line * self.stride + core / 64] >> (core % 64) & 1 != 0
    }

    /// Tells whether `cpu` can read from its own cache.
    #[inline]
    pub(crate) fn readable(&self, line: usize, cpu: usize) -> bool {
        let l = &self.lines[line];
        self.has_copy(line, self.cpus[cpu].core)
            && !(l.exclusive
                && (l.kept_from(cpu)
                    || self.now >= l.leaves
                        && l.serving.as_ref().is_some_and(|r| r.want == LineRight::Write)))
    }

    #[inline]
    fn writable(&self, line: usize, cpu: usize) -> bool {
        let l = &self.lines[line];
        l.exclusive && l.owner == self.cpus[cpu].core && self.now < l.leaves && !l.kept_from(cpu)
    }

    fn charge(&mut self, ns: f64) {
        let current = self.current;
        self.tasks[current].debt += ps(ns);
    }

    /// Makes a read of the running task.
    #[inline]
    pub(crate) fn read(&mut self, address: usize, value: u64) -> Went {
        self.accesses += 1;
        let current = self.current;
        let Some(line) = self.arena.line(address) else {
            self.tasks[current].debt += self.machine.cost.hit;
            return Went::Hit;
        };
        let cpu = self.tasks[current].cpu;
        if self.cpus[cpu].store == Some(line) {
            // Its own store comes first.
            self.tasks[current].poll.spoil();
            self.cpus[cpu].drainers.push(current);
            return Went::Drains;
        }
        if self.readable(line, cpu) {
            self.tasks[current].poll.read(line, value);
            self.tasks[current].debt += self.machine.cost.hit;
            return Went::Hit;
        }
        self.tasks[current].poll.miss();
        self.ask(line, LineRequest { cpu, task: current, want: LineRight::Read, store: None });
        Went::Asked
    }

    /// Makes a write of the running task, without waiting if `store`, else in one step with a read.
    pub(crate) fn write(&mut self, address: usize, store: Option<(u64, bool)>) -> Went {
        self.accesses += 1;
        let current = self.current;
        self.tasks[current].poll.spoil();
        let cpu = self.tasks[current].cpu;
        let cost = if store.is_some() { self.machine.cost.hit } else { self.exchange_on(cpu) };
        let Some(line) = self.arena.line(address) else {
            self.tasks[current].debt += cost;
            return Went::Hit;
        };
        if self.cpus[cpu].store.is_some() {
            self.cpus[cpu].drainers.push(current);
            return Went::Drains;
        }
        if self.writable(line, cpu) {
            self.tasks[current].debt += cost;
            self.notice(line);
            return Went::Hit;
        }
        let store = store.map(|(value, wide)| PendingStore { address, value, wide });
        let task = if store.is_some() { NOBODY } else { current };
        if store.is_some() {
            self.cpus[cpu].store = Some(line);
            self.tasks[current].debt += cost;
        }
        self.ask(line, LineRequest { cpu, task, want: LineRight::Write, store });
        if store.is_some() { Went::Posted } else { Went::Asked }
    }

    /// Returns the cost of an atomic exchange in its own cache: threads of a core share what
    /// executes it.
    fn exchange_on(&self, cpu: usize) -> Ps {
        if self.beside(cpu) {
            self.machine.cost.exchange_beside
        } else {
            self.machine.cost.exchange
        }
    }

    /// Returns how long an owner keeps a line that another wants: a race, which varies.
    fn hold(&mut self, writes: bool) -> Ps {
        let costs = &self.machine.cost;
        let hold = if writes { costs.hold_write } else { costs.hold_read };
        let variation = self.machine.lines.hold_variation;
        if variation == 0.0 {
            return hold;
        }
        (hold as f64 * (1.0 + variation * (2.0 * self.random.unit() - 1.0))) as Ps
    }

    /// Makes a write by the scheduler, which is part of its own cost.
    pub(crate) fn write_at_once(&mut self, cpu: usize, address: usize) {
        let Some(line) = self.arena.line(address) else { return };
        if self.lines.is_empty() {
            return;
        }
        if self.lines[line].serving.is_none() && self.lines[line].reads_until <= self.now {
            self.give(line, cpu, LineRight::Write);
        }
        self.notice(line);
    }

    fn ask(&mut self, line: usize, request: LineRequest) {
        if self.lines[line].serving.is_none() {
            // Then nobody waits either.
            self.begin(line, request, true);
        } else {
            let cache = self.cpus[request.cpu].cache;
            self.lines[line].queue.push(cache, request);
        }
    }

    /// Takes the request that is served next out of the queue.
    fn choose(&mut self, line: usize) -> Option<LineRequest> {
        let l = &mut self.lines[line];
        if l.queue.len() < 2
            || l.owner == NOBODY
            || l.queue.passed_over() >= self.machine.lines.patience as usize
            || self.random.unit() >= self.machine.lines.preference
        {
            return l.queue.pop();
        }
        let reach = self.reach.of(self.cpus[l.keeper].cache);
        reach.iter().find_map(|&caches| l.queue.pop_from(caches))
    }

    /// Serves what can be served now of what waited.
    fn serve(&mut self, line: usize) {
        while self.lines[line].serving.is_none()
            && let Some(request) = self.choose(line)
        {
            self.begin(line, request, false);
        }
    }

    /// Begins to serve a request. `travels`: it has just been made, and has to get to the
    /// owner first; one that waited is there when its turn comes.
    fn begin(&mut self, line: usize, request: LineRequest, travels: bool) {
        let now = self.now;
        let jitter = 1.0 + self.machine.lines.jitter * (2.0 * self.random.unit() - 1.0);
        let l = &self.lines[line];
        let waiting = l.queue.len();
        let writes = request.want == LineRight::Write;
        if !l.exclusive && !writes {
            let class = self.nearest(line, request.cpu);
            let cost = (self.latency(class, 0) as f64 * jitter) as Ps;
            let begins = now.max(l.port);
            let done = begins + cost;
            let l = &mut self.lines[line];
            l.port = begins + self.machine.cost.occupied[class];
            l.reads_until = l.reads_until.max(done);
            self.announce(done - now, What::Read(request.task as u32, line as u32));
            return;
        }
        let (exclusive, since) = (l.exclusive, l.since);
        let class = if exclusive {
            self.to_owner(line, request.cpu)
        } else {
            self.farthest(line, request.cpu)
        };
        let mut cost = (self.latency(class, waiting) as f64 * jitter) as Ps;
        let from = if exclusive {
            let there = if travels { cost / 2 } else { 0 };
            cost -= there;
            (now + there).max(since + self.hold(writes))
        } else {
            now.max(l.reads_until).max(l.port)
        };
        let l = &mut self.lines[line];
        l.leaves = from;
        l.serving = Some(request);
        self.announce(from + cost - now, What::Line(line as u32));
    }

    fn latency(&self, class: usize, waiting: usize) -> Ps {
        let plain = self.machine.cost.transfer[class];
        if waiting > 0 { (plain as f64 * self.machine.lines.contended[class]) as Ps } else { plain }
    }

    /// Returns the distance to the nearest copy.
    fn nearest(&self, line: usize, cpu: usize) -> usize {
        let caches = self.lines[line].caches;
        let nearest = self.reach.of(self.cpus[cpu].cache).iter().position(|&at| at & caches != 0);
        nearest.unwrap_or(self.machine.memory_class())
    }

    /// Returns the distance to the farthest copy, which has to be withdrawn.
    fn farthest(&self, line: usize, cpu: usize) -> usize {
        let caches = self.lines[line].caches;
        let farthest = self.reach.of(self.cpus[cpu].cache).iter().rposition(|&at| at & caches != 0);
        farthest.unwrap_or(self.machine.memory_class())
    }

    /// Returns the distance to the owner.
    fn to_owner(&self, line: usize, cpu: usize) -> usize {
        let l = &self.lines[line];
        let cpu = &self.cpus[cpu];
        if l.owner == cpu.core {
            return self.machine.sibling_class();
        }
        let owner = 1 << self.cpus[l.keeper].cache;
        let there = self.reach.of(cpu.cache).iter().position(|&at| at & owner != 0);
        there.unwrap_or(self.machine.memory_class())
    }

    /// Notes that `cpu` has the line from now on.
    fn give(&mut self, line: usize, cpu: usize, want: LineRight) {
        let core = self.cpus[cpu].core;
        let row = line * self.stride;
        let cache = 1 << self.cpus[cpu].cache;
        let now = self.now;
        let l = &mut self.lines[line];
        let fresh = l.owner == NOBODY;
        if want == LineRight::Write || fresh {
            self.copies[row..row + self.stride].fill(0);
            (l.exclusive, l.owner, l.keeper) = (true, core, cpu);
            (l.caches, l.since) = (cache, now);
        } else {
            l.exclusive = false;
            l.caches |= cache;
        }
        self.copies[row + core / 64] |= 1 << (core % 64);
    }

    /// Finishes a request whose line has come. Returns the task that goes on.
    pub(crate) fn arrived(&mut self, line: usize) -> Option<usize> {
        let request = self.lines[line].serving.take().expect("a request is being served");
        self.lines[line].leaves = Ps::MAX;
        self.give(line, request.cpu, request.want);
        let mut goes_on = None;
        if request.want == LineRight::Write {
            self.notice(line);
        }
        if let Some(store) = request.store {
            store.apply();
            let cpu = &mut self.cpus[request.cpu];
            cpu.store = None;
            // At most one task of a processor waits, and runs there.
            goes_on = cpu.drainers.pop();
        } else {
            self.tasks[request.task].debt += if request.want == LineRight::Write {
                self.exchange_on(request.cpu)
            } else {
                self.machine.cost.hit
            };
            goes_on = Some(request.task).or(goes_on);
        }
        self.serve(line);
        goes_on
    }

    /// Ends a read of a shared line.
    pub(crate) fn was_read(&mut self, task: usize, line: usize) -> Option<usize> {
        self.give(line, self.tasks[task].cpu, LineRight::Read);
        self.tasks[task].debt += self.machine.cost.hit;
        Some(task)
    }

    /// Tells whether releases can be restarted, and are cheap for it.
    pub(crate) fn restartable(&self) -> bool {
        self.machine.kernel.restart > 0.0
    }

    /// Takes note that the running task's latest exchange was none: it cost what a store does.
    pub(crate) fn was_plain(&mut self) {
        let exchange = self.exchange_on(self.tasks[self.current].cpu);
        let spared = exchange.saturating_sub(self.machine.cost.hit);
        let task = &mut self.tasks[self.current];
        task.debt = task.debt.saturating_sub(spared);
    }

    /// Lets the time of a plain cost pass.
    pub(crate) fn pay(&mut self, ns: f64) {
        self.charge(ns);
    }
}
