//! The thread that samples the job at intervals.
//!
//! Each sample (*look*) combines two sources: the process tree (resident memory, faults) and the board
//! (shared memory with a *slot* for each process: the counters of its allocator). It also counts
//! **strangers**: processes of the job that never took a slot of the board, and so did not run on Vellum. A
//! process has no slot between its fork and its library's start, so strangers are judged only at the end. If
//! a process still has no slot at its second look, its executable is inspected for the reason.
//!
//! - Gauges (cached and live memory) are summed over slots of processes alive in the same sample, counters
//!   over all slots.
//! - The thread holds no lock while it reads.
//! - No table grows without limit.

use crate::tree::Seen;
use crate::{BoardFile, Bytes, Image, Obstacle, Pace, Pid, Point, Series, Tree};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vellum_kernel::Used;
use vellum_wire::Counter;

const STRANGERS_MAX: usize = 1 << 16;
const INSPECTIONS_MAX: u32 = 64;
/// The interval at which write calls are counted.
const WRITES_EVERY: Duration = Duration::from_millis(100);

/// The job a moment ago.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// The newest point.
    pub point: Point,
    /// The most resident memory seen so far.
    pub peak: Bytes,
    /// Write calls of the processes alive, when counted and readable.
    pub writes: Option<u64>,
}

/// Processes of one name that never took a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// The command's name.
    pub comm: String,
    /// How many.
    pub count: u32,
    /// Why the library cannot be preloaded into their executable; `None` if that is unknown.
    pub why: Option<Obstacle>,
}

/// The sampler's results.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The samples.
    pub series: Series,
    /// Processes without a slot, the program itself aside; most numerous first.
    pub strangers: Vec<Stranger>,
    /// Names of the processes still alive when the sampler stopped.
    pub survivors: Vec<(Pid, String)>,
    /// Processes whose parent ended before them, and what they had used when they were seen last.
    pub strays: (usize, Used),
    /// CPU time that looking cost.
    pub cost: Duration,
    /// False when `/proc` could not be read at all.
    pub readable: bool,
}

/// The running thread.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Sampled>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    now: Now,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Starts looking at `tree`, of which `program` was started at `started`. With `count_writes`, write
    /// calls are counted too.
    pub fn start(
        tree: Option<Tree>,
        program: Pid,
        started: Instant,
        board: Option<Arc<BoardFile>>,
        count_writes: bool,
    ) -> Sampler {
        let shared = Arc::new(Shared::default());
        let thread = tree.and_then(|tree| {
            let watch = Watch {
                tree,
                started,
                board,
                census: Census { program, ..Census::default() },
                series: Series::default(),
                count_writes,
                writes: None,
                writes_at: None,
            };
            let shared = shared.clone();
            std::thread::Builder::new().name("sampler".into()).spawn(move || watch.run(&shared)).ok()
        });
        Sampler { shared, thread }
    }

    /// The job at the last look.
    pub fn now(&self) -> Now {
        self.shared.lock().now
    }

    /// Takes a last look and ends the thread.
    pub fn stop(self) -> Sampled {
        self.shared.lock().stop = true;
        self.shared.wake.notify_all();
        self.thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

struct Watch {
    tree: Tree,
    started: Instant,
    board: Option<Arc<BoardFile>>,
    census: Census,
    series: Series,
    count_writes: bool,
    writes: Option<u64>,
    writes_at: Option<Duration>,
}

impl Watch {
    fn run(mut self, shared: &Shared) -> Sampled {
        let mut pace = Pace::default();
        let mut spent = thread_cpu();
        loop {
            let (now, job_cpu) = self.look();
            let after = thread_cpu();
            let interval = pace.next(now.point.at, after.saturating_sub(spent), job_cpu);
            spent = after;
            let mut state = shared.lock();
            state.now = now;
            let waited = shared.wake.wait_timeout_while(state, interval, |state| !state.stop);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.stop {
                break;
            }
        }
        let last = self.tree.last_sample();
        let survivors = last.alive.into_iter().map(|seen| (seen.pid, seen.stat.comm)).collect();
        Sampled {
            strangers: self.census.strangers(self.board.as_deref()),
            series: self.series,
            survivors,
            strays: last.strays,
            cost: thread_cpu(),
            readable: true,
        }
    }

    fn look(&mut self) -> (Now, Duration) {
        let look = self.tree.sample();
        let at = self.started.elapsed();
        if self.count_writes && self.writes_at.is_none_or(|last| at.saturating_sub(last) >= WRITES_EVERY) {
            (self.writes, self.writes_at) = (self.tree.writes(&look), Some(at));
        }
        let mut point = Point {
            at,
            processes: look.alive.len() as u32,
            resident: look.resident(),
            files: look.files(),
            minor_faults: look.used.minor_faults,
            major_faults: look.used.major_faults,
            ..Point::default()
        };
        if let Some(board) = &self.board {
            board.reserve_ahead();
            add_board(&mut point, board, &look.alive);
            self.census.take(&look.alive, board);
        }
        // No process is alive: the program has just ended, and the kernel's own totals have the rest.
        if !look.alive.is_empty() {
            self.series.push(point);
        }
        (Now { point, peak: self.series.peak().unwrap_or_default(), writes: self.writes }, look.used.cpu)
    }
}

fn add_board(point: &mut Point, board: &BoardFile, alive: &[Seen]) {
    let alive: HashSet<u32> = alive.iter().map(|seen| seen.pid.0 as u32).collect();
    for slot in board.claimed() {
        point.cache_hits += slot.get(Counter::CacheHits);
        point.extents += slot.get(Counter::ExtentsOut);
        point.warm += Bytes(slot.get(Counter::BytesWarm));
        point.paged_in += slot.get(Counter::PagedRead);
        if alive.contains(&slot.pid.load(Relaxed)) {
            point.cached += Bytes(slot.get(Counter::NowCached));
            let live = slot.get(Counter::NowLive);
            point.live += Bytes(live);
            // A process that has not counted its blocks yet is a small one, of few slabs.
            let in_use = slot.get(Counter::NowInUse);
            point.in_use += Bytes(if in_use == 0 { live } else { in_use });
            point.free_in_slabs += Bytes(slot.get(Counter::NowFreeInSlabs));
            point.returned += Bytes(slot.get(Counter::NowReturned));
        }
    }
}

struct Census {
    program: Pid,
    seated: HashSet<u32>,
    read: usize,
    unseated: HashMap<(Pid, u64), Resident>,
    inspections: u32,
}

impl Default for Census {
    fn default() -> Self {
        Census { program: Pid(0), seated: HashSet::new(), read: 0, unseated: HashMap::new(), inspections: 0 }
    }
}

/// One process without a slot so far.
struct Resident {
    comm: String,
    looks: u32,
    /// The id inside the process's own pid namespace, which is what its slot would hold.
    inner: Option<u32>,
    why: Option<Obstacle>,
}

impl Census {
    fn take(&mut self, alive: &[Seen], board: &BoardFile) {
        self.read_seats(board);
        for seen in alive.iter().filter(|seen| seen.pid != self.program) {
            let key = (seen.pid, seen.stat.started_ticks);
            if self.seated.contains(&(seen.pid.0 as u32)) {
                self.unseated.remove(&key);
                continue;
            }
            if self.unseated.len() >= STRANGERS_MAX && !self.unseated.contains_key(&key) {
                continue;
            }
            let resident = self.unseated.entry(key).or_insert_with(|| Resident {
                comm: String::new(),
                looks: 0,
                inner: None,
                why: None,
            });
            // The name changes when the process executes another program; the last one counts.
            if resident.comm != seen.stat.comm {
                *resident = Resident { comm: seen.stat.comm.clone(), looks: 0, inner: None, why: None };
            }
            resident.looks += 1;
            if resident.looks == 2 && self.inspections < INSPECTIONS_MAX {
                self.inspections += 1;
                resident.inner = seen.pid.status().ok().and_then(|status| status.innermost_pid);
                let image = Image::inspect(&seen.pid.file("exe"));
                resident.why = image.ok().and_then(|image| image.obstacle);
            }
        }
    }

    /// Reads the slots claimed since the last time; a slot whose pid is not yet written is read again next
    /// time.
    fn read_seats(&mut self, board: &BoardFile) {
        for slot in &board.claimed()[self.read.min(board.claimed().len())..] {
            match slot.pid.load(Relaxed) {
                0 => break,
                pid => {
                    self.seated.insert(pid);
                    self.read += 1;
                }
            }
        }
    }

    fn strangers(mut self, board: Option<&BoardFile>) -> Vec<Stranger> {
        let Some(board) = board else { return Vec::new() };
        self.read_seats(board);
        let mut named: BTreeMap<String, (u32, Option<Obstacle>)> = BTreeMap::new();
        for ((pid, _), resident) in self.unseated {
            let seated = |pid: u32| self.seated.contains(&pid);
            if seated(pid.0 as u32) || resident.inner.is_some_and(seated) {
                continue;
            }
            let (count, why) = named.entry(resident.comm).or_default();
            *count += 1;
            if why.is_none() {
                *why = resident.why;
            }
        }
        let mut list: Vec<Stranger> =
            named.into_iter().map(|(comm, (count, why))| Stranger { comm, count, why }).collect();
        list.sort_by_key(|stranger| std::cmp::Reverse(stranger.count));
        list
    }
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
