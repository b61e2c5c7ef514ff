//! Rows of `vellum doctor` for profiles and benchmarks: kernel events, clocks, settings that disturb timings.

use super::row::{Row, Section, State};
use vellum_cost::FaultWatch;
use vellum_experiment::process_duel::Counter;
use vellum_kernel::machine::{PERF_PARANOID, PTRACE_SCOPE, setting, shares_cores};
use vellum_kernel::{SYS_PTRACE, has_capability};
use vellum_measure::{Machine, Unit};
use vellum_report::units::size;
use vellum_timing::clock::{Clock, ClockKind};
use vellum_timing::load;

pub(super) fn profiling() -> Vec<Row> {
    let mut rows = faults();
    rows.push(processes());
    rows
}

fn faults() -> Vec<Row> {
    let row =
        Row::works(Section::Profiling, "fault-events", "page faults are shown one by one (perf_event_open)");
    let watch = match FaultWatch::prepare() {
        Ok(watch) => watch,
        Err(refused) => {
            return vec![row.absent(State::Missing, "cost runs without page faults", &refused.to_string())];
        }
    };
    let (got, wanted) = watch.ring_bytes();
    let rings = Row::works(Section::Profiling, "event-rings", format!("rings of {} a processor", size(got)));
    let rings = rings.unless(
        got >= wanted,
        "smaller rings than needed: more faults are counted without their place",
        format!("RLIMIT_MEMLOCK and kernel.perf_event_mlock_kb allow less than {}", size(wanted)),
        "ulimit -l unlimited, sysctl kernel.perf_event_mlock_kb, or root",
    );
    let setting = setting(PERF_PARANOID).unwrap_or_default();
    let row = row.unless(
        watch.sees_kernel(),
        "only those in user mode: not those inside system calls",
        format!("{PERF_PARANOID} is {setting}, and this user may not profile the kernel"),
        "sysctl kernel.perf_event_paranoid=1, CAP_PERFMON, or root",
    );
    vec![row, rings]
}

fn processes() -> Row {
    let what = "counters of your running programs can be read (gc-stat PID)";
    let row = Row::works(Section::Profiling, "other-processes", what);
    let scope = setting(PTRACE_SCOPE).unwrap_or_default();
    row.unless(
        has_capability(SYS_PTRACE) || matches!(scope.as_str(), "" | "0"),
        "only those of programs that it starts itself (gc-stat -- PROGRAM)",
        format!("{PTRACE_SCOPE} is {scope}"),
        "sysctl kernel.yama.ptrace_scope=0, or run as root",
    )
}

pub(super) fn benchmarks(machine: &Machine) -> Vec<Row> {
    let frequency = frequency(machine.governor.as_deref());
    vec![clock(), instructions(), frequency, boost(machine.turbo), cores(), busy(load::lately())]
}

fn clock() -> Row {
    let row = |what: String| Row::works(Section::Benchmarks, "clock", what);
    let clock = match Clock::best() {
        Ok(clock) => clock,
        Err(error) => {
            return row(String::new()).absent(State::Missing, "bench times nothing", &error.to_string());
        }
    };
    let step = Unit::Nanoseconds.scaled(clock.step_ns());
    let found = row(format!("{}, step {step}", clock.kind()));
    match Clock::open(ClockKind::TscFenced) {
        Ok(_) => found,
        Err(error) => found.absent(State::FallsBack, clock.kind().name(), &error.to_string()),
    }
}

fn instructions() -> Row {
    let row = Row::works(Section::Benchmarks, "instructions", "the processor counts instructions");
    let Err(refused) = Counter::Hardware.check() else { return row };
    let setting = "kernel.perf_event_paranoid of 2 or less, and a machine that lends its counters";
    match Counter::valgrind() {
        Ok(_) => row.falls_back(
            "bench --metric instructions --counter valgrind, 4 to 30 times as slow",
            refused.to_string(),
            setting,
        ),
        Err(_) => row.missing(
            "bench compares by time alone",
            refused.to_string(),
            format!("valgrind (apt-get install valgrind); or {setting}"),
        ),
    }
}

fn frequency(governor: Option<&str>) -> Row {
    let row = Row::works(Section::Benchmarks, "frequency", "the processor keeps its frequency");
    let why = format!("its governor is {}", governor.unwrap_or_default());
    let cure = "as root: cpupower frequency-set -g performance";
    let found = ["it follows the load: timings vary from run to run", &why, cure];
    let unknown = "/sys/devices/system/cpu/cpu0/cpufreq is not there (usual in virtual machines)";
    row.if_known(governor.map(|governor| governor == "performance"), unknown, found)
}

fn boost(turbo: Option<bool>) -> Row {
    let row = Row::works(Section::Benchmarks, "boost", "the frequency does not rise above the nominal one");
    let found = [
        "it does, and falls when the processor gets warm",
        "boost is on",
        "as root: echo 0 > /sys/devices/system/cpu/cpufreq/boost (or 1 to intel_pstate/no_turbo)",
    ];
    let unknown = "neither intel_pstate/no_turbo nor cpufreq/boost is in /sys/devices/system/cpu";
    row.if_known(turbo.map(|is_on| !is_on), unknown, found)
}

fn cores() -> Row {
    let row = Row::works(Section::Benchmarks, "cores", "each processor has its own core");
    let found = [
        "two processors share a core: what runs on one moves the timings of the other",
        "/sys/devices/system/cpu/smt/active is 1",
        "as root: echo off > /sys/devices/system/cpu/smt/control",
    ];
    let unknown = "/sys/devices/system/cpu/smt/active is not there";
    row.if_known(shares_cores().map(|shares| !shares), unknown, found)
}

fn busy(share: Option<f64>) -> Row {
    let row = |what: String| Row::works(Section::Benchmarks, "load", what);
    let Some(share) = share else {
        return row("the processors are free".to_owned())
            .not_shown(format!("{} cannot be read", load::PRESSURE));
    };
    let waited = format!("tasks waited for a processor in {:.0} % of the last 10 s", share * 100.0);
    if share < load::BUSY_FROM {
        return row(waited);
    }
    row("the processors are free".to_owned()).falls_back(
        "timed programs wait for others: CPU time (the default metric) moves less than wall time",
        format!("{}: {waited}", load::PRESSURE),
        "end what runs beside, or give bench more --time",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_setting_has_a_row() {
        let states = |row: Row| row.state;
        assert_eq!(
            [None, Some("performance"), Some("powersave")].map(|governor| states(frequency(governor))),
            [State::NotShown, State::Works, State::FallsBack]
        );
        assert_eq!(
            [None, Some(false), Some(true)].map(|turbo| states(boost(turbo))),
            [State::NotShown, State::Works, State::FallsBack]
        );
        assert_eq!(
            [None, Some(0.02), Some(0.5)].map(|share| states(busy(share))),
            [State::NotShown, State::Works, State::FallsBack]
        );
    }
}
