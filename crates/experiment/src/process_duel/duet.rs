//! Duets: pairs of processes that run at the same time, each on its own processor.
//!
//! ```text
//! processor p   A │ A │ B │ …     each round: A beside A', A beside B, … in random order;
//! processor q   A'│ B │ A │ …     the processors of each pair are drawn at random
//! ```
//!
//! Disturbances of the whole machine (neighbours in the cloud, a frequency governor, heat) slow both
//! processes at once and leave their ratio unchanged. If the two ran by turns, a disturbance would slow only
//! one. Disturbances of one processor are balanced, because the processor of each process is drawn at random.
//! The control is the pair A and A', the same program; it shows the remaining noise.
//!
//! Source: Bulej, Horký, Tůma, Farquet, Prokopec, "Duet benchmarking: improving measurement accuracy in the
//! cloud", ICPE 2020. The paper iterates two workloads in parallel, each on a fixed processor, and compares
//! iterations that overlap. Here each pair is two whole processes, the processors are drawn, and there is a
//! control.

use super::DuetError;
use super::spawn::{Prepared, ProcessRun};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::os::fd::RawFd;
use std::sync::Barrier;
use vellum_kernel::machine::core_siblings;
use vellum_measure::Rng;
use vellum_process::SpawnError;
use vellum_timing::clock::Clock;

/// Separates the draws of processors from the draws of orders, which have the same seed.
const PLACES: u64 = 0x6475_6574;

/// Runs pairs of processes at the same time.
#[derive(Debug)]
pub(super) struct Duet {
    processors: [usize; 2],
    rng: Rng,
}

impl Duet {
    /// Chooses two of the allowed processors, of different cores if possible.
    pub(super) fn open(seed: u64) -> Result<Duet, DuetError> {
        let allowed = sched_getaffinity(None).map_err(|error| DuetError::Affinity(error.into()))?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number)).collect();
        let processors = two_of(&allowed, &core_siblings);
        let processors = processors.ok_or(DuetError::Processors(allowed.len()))?;
        Ok(Duet { processors, rng: Rng::new(seed ^ PLACES) })
    }

    pub(super) fn processors(&self) -> [usize; 2] {
        self.processors
    }

    /// Runs both processes at the same time, with these standard descriptors.
    pub(super) fn run(
        &mut self,
        pair: [&Prepared; 2],
        clock: &Clock,
        stdio: [[RawFd; 3]; 2],
    ) -> Result<[ProcessRun; 2], SpawnError> {
        let [p, q] = self.processors;
        let drawn = self.rng.next_u64();
        let processors = if drawn & 1 == 0 { [p, q] } else { [q, p] };
        // The thread made first is drawn as well, because the second may start later.
        let first = usize::from(drawn & 2 == 0);
        let both_ready = Barrier::new(pair.len());
        let run = |at: usize| {
            // The thread moves first, because a process inherits its thread's processor.
            let placed = go_to(processors[at]);
            both_ready.wait();
            placed.and_then(|()| pair[at].run(clock, stdio[at]))
        };
        let mut runs = std::thread::scope(|scope| {
            let threads = [first, 1 - first].map(|at| scope.spawn(move || run(at)));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if first == 1 {
            runs.reverse();
        }
        let [one, other] = runs;
        Ok([one?, other?])
    }
}

/// Moves this thread to a processor.
fn go_to(processor: usize) -> Result<(), SpawnError> {
    let mut set = CpuSet::new();
    set.set(processor);
    let moved = sched_setaffinity(None, &set);
    moved.map_err(|error| SpawnError::System { call: "sched_setaffinity", source: error.into() })
}

/// The first processor, and the next one of another core, or the next one if there is no other core.
fn two_of(allowed: &[usize], siblings: &dyn Fn(usize) -> Vec<i32>) -> Option<[usize; 2]> {
    let (&first, rest) = allowed.split_first()?;
    let same_core = siblings(first);
    let apart = rest.iter().find(|&&other| !same_core.contains(&(other as i32)));
    apart.or(rest.first()).map(|&second| [first, second])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_duel::tests::{busy, shell};
    use crate::process_duel::{ProcessDuelError, ProcessMetric, ProcessOptions, process_duel};
    use vellum_measure::Options;

    fn quick() -> ProcessOptions {
        ProcessOptions { rounds_min: 8, rounds_max: 8, duet: true, ..ProcessOptions::default() }
    }

    #[test]
    fn processors_of_different_cores_are_preferred() {
        let pairs = |processor: usize| vec![processor as i32 & !1, processor as i32 | 1];
        assert_eq!(two_of(&[0, 1, 2, 3], &pairs), Some([0, 2]));
        assert_eq!(two_of(&[0, 1], &pairs), Some([0, 1]));
        assert_eq!(two_of(&[3, 5], &|_| Vec::new()), Some([3, 5]));
        assert_eq!((two_of(&[3], &pairs), two_of(&[], &pairs)), (None, None));
    }

    /// Each process runs on one processor. The two of a pair run on different ones, which they exchange from
    /// pair to pair.
    #[test]
    fn pairs_run_at_the_same_time_on_processors_that_they_exchange() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let looks = |name: &str| {
            let place = "$(grep Cpus_allowed_list /proc/self/status | tr -dc 0-9,-)";
            shell(&format!("echo {name} {place} >> {}; sleep 0.05", seen.display()))
        };
        let duel = match process_duel(&[&looks("a"), &looks("b")], &quick()) {
            Ok(duel) => duel,
            Err(ProcessDuelError::Duet(error)) => return vellum_skip::skip(error),
            Err(other) => panic!("{other}"),
        };
        let places = duel.processors.unwrap();
        for round in &duel.rounds {
            assert_eq!((round.runs.len(), round.beside.len()), (3, 2));
            for (arm, beside) in (1..).zip(&round.beside) {
                let (one, other) = (beside, round.runs[arm]);
                let both = one.start_ns.max(other.start_ns) as f64;
                let over = [*one, other].map(|run| run.start_ns as f64 + run.wall_ns);
                assert!(over.iter().all(|over| *over > both), "they do not overlap: {round:?}");
            }
        }
        let seen = std::fs::read_to_string(seen).unwrap();
        for name in ["a", "b"] {
            for place in places {
                let line = format!("{name} {place}");
                assert!(seen.lines().any(|one| one == line), "{name} was never on {place} (seed 1): {seen}");
            }
        }
        // The warm-up has one pair, and a round has A three times.
        assert_eq!(seen.lines().filter(|line| line.starts_with('a')).count(), 1 + 8 * 3);
        assert_eq!(duel.series("a", 0).label("order"), Some("duet"));
    }

    #[test]
    fn ratios_pair_concurrent_runs() {
        let busy = busy();
        let light = shell(":");
        let duel = match process_duel(&[&light, &busy, &light], &quick()) {
            Ok(duel) => duel,
            Err(ProcessDuelError::Duet(error)) => return vellum_skip::skip(error),
            Err(other) => panic!("{other}"),
        };
        for (round, [a, control, b]) in duel.rounds.iter().zip(duel.values(ProcessMetric::Cpu, 2)) {
            assert_eq!([a, b], [round.beside[1].cpu_ns(), round.runs[2].cpu_ns()]);
            let own = round.runs[1].cpu_ns() / round.beside[0].cpu_ns();
            assert!((control / a - own).abs() < 1e-9 * own, "{control} over {a} is not {own}");
        }
        let ratio =
            |arm| duel.compare(ProcessMetric::Cpu, arm, &Options::default()).unwrap().headline.ratio.estimate;
        assert!(ratio(2) > 1.5 && ratio(2) > ratio(3), "{} {}", ratio(2), ratio(3));
    }

    #[test]
    fn a_failure_of_either_process_ends_the_duet() {
        let failing = shell("echo the reason >&2; exit 3");
        for (programs, arm) in [([&failing, &shell(":")], "A"), ([&shell(":"), &failing], "B")] {
            match process_duel(&programs, &quick()) {
                Err(ProcessDuelError::Duet(error)) => return vellum_skip::skip(error),
                Err(error) => {
                    let expected = format!("{arm} (/bin/sh) exited with status 3 and printed: the reason");
                    assert!(error.to_string().contains(&expected), "{error}");
                }
                Ok(_) => panic!("{arm} failed"),
            }
        }
        let ignoring = ProcessOptions { ignore_failure: true, ..quick() };
        let duel = process_duel(&[&failing, &shell(":")], &ignoring).unwrap();
        assert_eq!(duel.failures, vec![8, 8, 0]);
    }

    #[test]
    fn one_processor_is_refused() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&number| before.is_set(number)).unwrap();
        // Only this thread moves.
        go_to(first).unwrap();
        let error = process_duel(&[&shell(":"), &shell(":")], &quick()).unwrap_err();
        sched_setaffinity(None, &before).unwrap();
        assert!(error.to_string().contains("needs two processors, and 1 is allowed"), "{error}");
    }
}
