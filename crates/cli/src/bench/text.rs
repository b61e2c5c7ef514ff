//! The text report of a benchmark: tables, warnings, and the verdict last.

use super::args::{Bench, Metric};
use super::compared;
use super::report::{Held, Kind, Program, Report as Found, Subject};
use crate::accounts::{BEAT_HEADS, LOSS_HEADS, Losses, share, sought};
use crate::text::shown_command;
use vellum_measure::{Course, Interval, Mode, Outcome, Unit};
use vellum_report::units::many;
use vellum_report::{Report, Row, Section, Table};

/// Causes of one case that are named in a line.
const CAUSES_SHOWN: usize = 3;
/// A cause with a smaller share of the lost time is left out of that line.
const CAUSE_SHARE_MIN: f64 = 0.005;

pub(super) fn report<'a>(found: &'a Found, args: &Bench) -> Report<'a> {
    let mut report = Report::new(None);
    if !args.quiet {
        report.section(Section::new(), |section| head(section, found));
        match found.kind {
            Kind::Versus => versus(&mut report, found),
            Kind::Program => program(&mut report, found),
            Kind::Suite => suite(&mut report, found),
        }
        if args.attribute || found.kind == Kind::Program {
            losses(&mut report, found);
        }
        if args.periods || found.kind == Kind::Program {
            beats(&mut report, found);
        }
        report.section(Section::new(), |section| {
            found.warnings.iter().for_each(|warning| _ = section.row(Row::warning(warning)));
            section.notes(&found.advice);
        });
    }
    report.section(Section::new(), |section| {
        verdicts(found, args).into_iter().for_each(|verdict| _ = section.verdict(verdict));
    });
    report.documented(found)
}

fn head(section: &mut Section, found: &Found) {
    let ns = |value: f64| Unit::Nanoseconds.scaled(value);
    if let Some(suite) = &found.how.suite {
        section.verdict(format!("vellum bench: suite {suite}"));
        if let Some(base) = &found.base {
            section.sentence(format!("BASE {}: {}", base.clock, base.describe()));
        }
        return;
    }
    for program in &found.programs {
        let arm = if found.programs.len() > 1 { format!("{}: ", program.arm) } else { String::new() };
        section.verdict(format!("{arm}{}", shown_command(&program.command)));
    }
    let how = &found.how;
    let took = ns(how.took_ns as f64);
    let clock = format!("clock {}, step {}", how.clock, ns(how.step_ns));
    let clock = match how.counter {
        Some("hardware") => format!("instructions counted by the processor; {clock}"),
        Some(other) => format!("instructions counted by {other}"),
        None => clock,
    };
    if found.kind == Kind::Versus {
        let (rounds, seed) = (how.rounds.unwrap_or(0), how.seed.unwrap_or(0));
        let others: Vec<&str> = found.programs.iter().skip(1).map(|one| one.arm.as_str()).collect();
        let (last, others) = others.split_last().unwrap_or((&"", &[]));
        let others: String = others.iter().flat_map(|arm| [", ", *arm]).collect();
        section.sentence(format!(
            "{rounds} rounds of A, A again{others} and {last} in random order (seed {seed}) in {took}; {clock}"
        ));
    } else {
        let runs = found.series.first().map_or(0, |series| series.observations.len());
        section.sentence(format!("{} in {took}; {clock}", many(runs as u64, "run")));
    }
    if let Some(start) = &found.start {
        let off = if start.subtracted { "taken off" } else { "included" };
        let (wall, cpu) = (ns(start.wall.min), ns(start.cpu.min));
        section.sentence(format!("starting {}: {wall} wall, {cpu} CPU, {off}", start.what));
    }
}

fn sentences(report: &mut Report<'_>, sentences: impl IntoIterator<Item = String>) {
    let say = |section: &mut Section, sentence| _ = section.sentence(sentence);
    report.section(Section::new(), |section| sentences.into_iter().for_each(|words| say(section, words)));
}

fn table(report: &mut Report<'_>, title: impl Into<String>, table: Table) {
    report.section(Section::titled(title), |section| _ = section.table(table));
}

fn versus(report: &mut Report<'_>, found: &Found) {
    compared::tables(found).into_iter().for_each(|(title, of)| table(report, title, of));
    let order = found.versus.first().and_then(|row| row.comparison.order.as_ref());
    // A result that depends on the order is among the warnings.
    let order = order.filter(|order| !order.depends()).map(ToString::to_string);
    let is_checked = found.versus.first().is_some_and(|row| row.comparison.order.is_some());
    sentences(report, order.or_else(|| found.how.order_check.clone().filter(|_| !is_checked)));
}

fn program(report: &mut Report<'_>, found: &Found) {
    table(report, "figures", figures(found));
    // The last subject is the wall time, if there is one.
    let Some(last) = found.subjects.last() else { return };
    let kept = share(last.kept_share);
    let layers =
        format!("layers of outliers (mean ± 2 std): {}; {kept} of the runs lie in none", last.layers);
    let usage = match &found.programs[..] {
        [program] => peak(program).zip(faults(program)),
        _ => None,
    };
    let usage = usage.map(|(peak, faults)| format!("peak resident {peak}, page faults {faults}"));
    sentences(report, [layers].into_iter().chain(usage).chain(levels(found)));
}

/// Sentences about the level of each subject: its course, and its modes.
fn levels(found: &Found) -> impl Iterator<Item = String> {
    found.subjects.iter().flat_map(|subject| {
        let told = [course(subject), several_modes(subject)].into_iter().flatten();
        told.map(|sentence| format!("{}: {sentence}", called(found, subject)))
    })
}

fn called(found: &Found, subject: &Subject) -> String {
    if found.kind == Kind::Suite { case(subject) } else { subject.metric.short().to_owned() }
}

fn suite(report: &mut Report<'_>, found: &Found) {
    table(report, "figures", figures(found));
    sentences(report, levels(found));
    sentences(report, found.refused.iter().map(|why| format!("not timed: {why}; --batch auto allows it")));
}

/// The five figures, and the low quantile.
pub(super) fn figures(found: &Found) -> Table {
    let head = match (found.kind, found.how.counter) {
        (Kind::Suite, _) => "operation",
        (_, Some(_)) => "",
        (_, None) => "time",
    };
    let heads = [head, "n", "mean", "min", "max", "std", low_name(found.how.low_share), "95 %"];
    // On a narrow terminal the last interval is dropped before names; the verdict and the JSON have it too.
    let mut figures = Table::plain(&heads, 1).with_spare(1);
    for subject in &found.subjects {
        let scaled = |value: f64| subject.metric.unit().scaled(value);
        let stat = &subject.stat;
        let mut cells = vec![called(found, subject), Unit::Count.scaled(stat.n as f64)];
        cells.extend([stat.mean, stat.min, stat.max, stat.std].map(scaled));
        cells
            .extend(subject.low.map_or_else(|| vec!["-".to_owned(); 2], |low| interval(low, subject.metric)));
        figures.row(cells);
    }
    figures
}

fn losses(report: &mut Report<'_>, found: &Found) {
    // With valgrind only instructions are measured.
    if found.how.counter.is_some() && found.start.is_none() {
        return;
    }
    let is_suite = found.kind == Kind::Suite;
    let mut lost = match is_suite {
        true => Table::plain(&["operation", "outliers", "lost", "to"], 1).with_words_last(),
        false => Table::plain(&LOSS_HEADS, 1),
    };
    let several = found.subjects.iter().filter(|subject| subject.losses.is_some()).count() > 1;
    for subject in &found.subjects {
        let Some(losses) = &subject.losses else { continue };
        if is_suite {
            let count = Unit::Count.scaled(losses.outliers as f64);
            lost.row(vec![case(subject), count, share(losses.of_all), greediest(losses)]);
            continue;
        }
        losses.rows(several.then_some(&subject.name)).for_each(|row| lost.row(row));
    }
    if lost.is_empty() {
        return sentences(report, ["no outlier lost time".to_owned()]);
    }
    let of_all = |subject: &Subject| {
        let share = share(subject.losses.as_ref()?.of_all);
        Some(if several { format!("{}: {share}", subject.name) } else { share })
    };
    let of_all: Vec<String> = found.subjects.iter().filter_map(of_all).collect();
    let of_all = (!is_suite).then(|| format!("of all wall time, that is {}", of_all.join(", ")));
    let lost_to = Section::titled("what outliers lost time to");
    report.section(lost_to, |section| _ = section.table(lost).remark(of_all));
}

fn beats(report: &mut Report<'_>, found: &Found) {
    const TITLE: &str = "disturbances that come back regularly";
    let mut all = Table::plain(&BEAT_HEADS, 1);
    let mut searched = Vec::new();
    let several = found.kind != Kind::Program;
    for subject in &found.subjects {
        let Some(beats) = &subject.beats else { continue };
        searched.push(beats.searched_hz);
        beats.rows(several.then_some(&case(subject))).for_each(|row| all.row(row));
    }
    match searched.into_iter().reduce(widest) {
        Some(range) if all.is_empty() => sentences(report, [format!("{TITLE}: {}", sought(range))]),
        _ => table(report, TITLE, all),
    }
}

fn verdicts(found: &Found, args: &Bench) -> Vec<String> {
    let decisive = compared::decisive(found);
    let mut said: Vec<String> =
        decisive.map(|row| format!("{} ({})", row.verdict, row.metric.words())).collect();
    if found.kind == Kind::Program {
        let decides = found.subjects.iter().find(|subject| subject.metric == args.metric);
        said.extend(decides.and_then(|subject| {
            let low = subject.low?;
            let [estimate, range] = <[String; 2]>::try_from(interval(low, subject.metric)).ok()?;
            if subject.metric == Metric::Instructions {
                return Some(format!("{} executes {estimate} instructions ({range})", subject.name));
            }
            Some(format!(
                "{} takes {estimate} ({range}) of {} when nothing disturbs it",
                subject.name,
                subject.metric.words()
            ))
        }));
    }
    said.extend(gates(&found.gates));
    said
}

/// The gates in words. A single gate and each failed gate get a line of their own.
fn gates(gates: &[Held]) -> Vec<String> {
    let passed = gates.iter().filter(|held| held.gate.outcome == Outcome::Passed).count();
    let alone = gates.len() == 1;
    let told = gates.iter().filter(|held| alone || held.gate.outcome != Outcome::Passed);
    let mut said: Vec<String> = told.map(Held::words).collect();
    if !alone && passed > 0 {
        said.push(format!("--fail-above: passed by {passed} of {}", gates.len()));
    }
    said
}

/// The name of a case in tables: without the suite.
fn case(subject: &Subject) -> String {
    let name = subject.name.split_once('/').map_or(&*subject.name, |(_suite, case)| case);
    if subject.batch > 1 { format!("{name} (of {})", subject.batch) } else { name.to_owned() }
}

/// The course of the level before it became steady, if it changed.
fn course(subject: &Subject) -> Option<String> {
    let steady = subject.steady.as_ref()?;
    let number = |place: usize| Unit::Count.scaled((place + 1) as f64);
    let ns = |value: f64| subject.metric.unit().scaled(value);
    let last = steady.stretches.last()?.level;
    // The course was computed from all earlier stretches, however many.
    let earlier =
        steady.stretches.iter().filter(|stretch| steady.from.is_some_and(|from| stretch.start < from));
    let (sum, count) = earlier.fold((0.0, 0.0), |(sum, count), stretch| {
        let n = (stretch.end - stretch.start) as f64;
        (sum + stretch.level * n, count + n)
    });
    let before = sum / f64::max(count, 1.0);
    match (steady.course, steady.from) {
        (Course::Flat, _) => None,
        (Course::WarmUp, Some(from)) => Some(format!(
            "steady from observation {} on ({}, before that {}); a longer --warm-up leaves the rest out",
            number(from),
            ns(last),
            ns(before)
        )),
        (Course::SlowDown, Some(from)) => {
            Some(format!("slower from observation {} on: {} after {}", number(from), ns(last), ns(before)))
        }
        _ => Some(format!(
            "its level does not settle: {} stretches, the last at {}",
            steady.stretches.len(),
            ns(last)
        )),
    }
}

/// The levels around which the observations cluster, if there are several.
fn several_modes(subject: &Subject) -> Option<String> {
    let modality = subject.modality.as_ref().filter(|modality| modality.is_bimodal())?;
    let mode = |mode: &Mode| format!("{} at {}", share(mode.share), subject.metric.unit().scaled(mode.at));
    let modes: Vec<String> = modality.modes.iter().map(mode).collect();
    Some(format!("several levels, which no single figure describes: {}", modes.join(", ")))
}

/// An interval as text: "12.3 µs" and "12.1 to 12.5 µs".
pub(super) fn interval(found: Interval, metric: Metric) -> Vec<String> {
    let scaled = |value: f64| metric.unit().scaled(value);
    let (low, high) = (scaled(found.low), scaled(found.high));
    let same_unit = low.split(' ').nth(1) == high.split(' ').nth(1);
    let low = if same_unit { low.split(' ').next().unwrap_or_default() } else { low.as_str() };
    vec![scaled(found.estimate), format!("{low} to {high}")]
}

/// The low quantile's name: "p10".
pub(super) fn low_name(share: f64) -> &'static str {
    match (share * 100.0).round() as u32 {
        10 => "p10",
        1 => "p1",
        5 => "p5",
        50 => "median",
        0 => "min",
        _ => "low",
    }
}

/// The largest causes as text: "preemption 80 %, minor fault 20 %".
fn greediest(losses: &Losses) -> String {
    let shown = losses.causes.iter().take(CAUSES_SHOWN).filter(|total| total.share >= CAUSE_SHARE_MIN);
    let shown: Vec<String> =
        shown.map(|total| format!("{} {:.0} %", total.cause, total.share * 100.0)).collect();
    shown.join(", ")
}

/// A program's peak resident memory, if it was measured.
pub(super) fn peak(program: &Program) -> Option<String> {
    let most = if program.peak_is_bound { "≤ " } else { "" };
    Some(format!("{most}{}", Unit::Bytes.scaled(program.peak_bytes?)))
}

/// A program's page faults, if they were measured.
pub(super) fn faults(program: &Program) -> Option<String> {
    program.faults.map(|faults| Unit::Count.scaled(faults))
}

/// The range that contains both.
fn widest(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.min(other.0), one.1.max(other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_print_their_unit_once() {
        let found = |low, high| interval(Interval { estimate: 12_300.0, low, high }, Metric::Cpu);
        assert_eq!(found(12_100.0, 12_500.0), ["12.3 µs", "12.1 to 12.5 µs"]);
        assert_eq!(found(900.0, 12_500.0), ["12.3 µs", "900 ns to 12.5 µs"]);
    }
}
