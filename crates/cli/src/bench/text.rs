//! The report as text: tables, warnings, and the verdict last.

use super::args::{Bench, Metric};
use super::compared;
use super::report::{Held, Kind, Program, Report, Subject};
use crate::accounts::{BEAT_HEADS, LOSS_HEADS, Losses, share, sought};
use crate::text::shown_command;
use vellum_measure::{Course, Interval, Mode, Outcome, Unit};
use vellum_report::Style;
use vellum_report::Table;
use vellum_report::units::many;

/// What stands before lines of a block.
const INDENT: &str = "  ";
/// Causes of one case that are named in a line.
const CAUSES_SHOWN: usize = 3;
/// A cause that took less of what was lost is left out of that line.
const CAUSE_SHARE_MIN: f64 = 0.005;

/// The report for people, at most `width` columns wide where that can be.
pub(super) fn render(report: &Report, args: &Bench, style: Style, width: usize) -> String {
    let mut page = Page { text: String::new(), style, width };
    if !args.quiet {
        page.head(report);
        match report.kind {
            Kind::Versus => page.versus(report),
            Kind::Program => page.program(report),
            Kind::Suite => page.suite(report),
        }
        if args.attribute || report.kind == Kind::Program {
            page.losses(report);
        }
        if args.periods || report.kind == Kind::Program {
            page.beats(report);
        }
        page.warnings(report);
    }
    page.verdict(report, args);
    page.text
}

struct Page {
    text: String,
    style: Style,
    width: usize,
}

impl Page {
    /// Adds a sentence, broken into lines.
    fn say(&mut self, sentence: &str) {
        self.say_after(INDENT, sentence);
    }

    fn say_after(&mut self, indent: &str, sentence: &str) {
        let mut line = indent.to_owned();
        for word in sentence.split(' ') {
            let long = line.chars().count() + word.chars().count();
            if long > self.width && line.trim_end().chars().count() > INDENT.len() {
                self.text += line.trim_end();
                self.text.push('\n');
                line = format!("{INDENT}{INDENT}");
            }
            line += word;
            line.push(' ');
        }
        self.text += line.trim_end();
        self.text.push('\n');
    }

    fn table(&mut self, title: &str, table: &Table) {
        if !table.is_empty() {
            self.text += &format!("\n{}\n", self.style.bold(title));
            self.text += &table.render(INDENT, self.width, self.style);
        }
    }

    fn head(&mut self, report: &Report) {
        let ns = |value: f64| Unit::Nanoseconds.scaled(value);
        if let Some(suite) = &report.how.suite {
            self.text += &format!("{}\n", self.style.bold(&format!("vellum bench: suite {suite}")));
            if let Some(base) = &report.base {
                self.say(&format!("BASE {}: {}", base.clock, base.describe()));
            }
            return;
        }
        for program in &report.programs {
            let arm = if report.programs.len() > 1 { format!("{}: ", program.arm) } else { String::new() };
            let command = shown_command(&program.command);
            self.text += &format!("{}\n", self.style.bold(&format!("{arm}{command}")));
        }
        let how = &report.how;
        let took = ns(how.took_ns as f64);
        let clock = format!("clock {}, step {}", how.clock, ns(how.step_ns));
        let clock = match how.counter {
            Some("hardware") => format!("instructions counted by the processor; {clock}"),
            Some(other) => format!("instructions counted by {other}"),
            None => clock,
        };
        if report.kind == Kind::Versus {
            let (rounds, seed) = (how.rounds.unwrap_or(0), how.seed.unwrap_or(0));
            let others: Vec<&str> = report.programs.iter().skip(1).map(|one| one.arm.as_str()).collect();
            let (last, others) = others.split_last().unwrap_or((&"", &[]));
            let others: String = others.iter().flat_map(|arm| [", ", *arm]).collect();
            let ran = match how.processors {
                Some([p, q]) => format!(
                    "{rounds} rounds of A beside A again{others} and {last}, on processors {p} and {q} by turns"
                ),
                None => format!("{rounds} rounds of A, A again{others} and {last} in random order"),
            };
            self.say(&format!("{ran} (seed {seed}) in {took}; {clock}"));
        } else {
            let runs = report.series.first().map_or(0, |series| series.observations.len());
            self.say(&format!("{} in {took}; {clock}", many(runs as u64, "run")));
        }
        if let Some(start) = &report.start {
            let off = if start.subtracted { "taken off" } else { "included" };
            let (wall, cpu) = (ns(start.wall.min), ns(start.cpu.min));
            self.say(&format!("starting {}: {wall} wall, {cpu} CPU, {off}", start.what));
        }
    }

    fn versus(&mut self, report: &Report) {
        for (title, table) in compared::tables(report) {
            self.table(&title, &table);
        }
        let order = report.versus.first().and_then(|row| row.comparison.order.as_ref());
        match (order, &report.how.order_check) {
            // One that depends on the order is among the warnings.
            (Some(order), _) if order.depends() => {}
            (Some(order), _) => self.blank_and_say(&order.to_string()),
            (None, Some(why)) => self.blank_and_say(why),
            (None, None) => {}
        }
    }

    fn blank_and_say(&mut self, sentence: &str) {
        self.text.push('\n');
        self.say(sentence);
    }

    fn program(&mut self, report: &Report) {
        self.figures(report, if report.how.counter.is_some() { "" } else { "time" });
        // The last one: the wall time, where there is one.
        let Some(last) = report.subjects.last() else { return };
        self.text.push('\n');
        let kept = share(last.kept_share);
        self.say(&format!(
            "layers of outliers (mean ± 2 std): {}; {kept} of the runs lie in none",
            last.layers
        ));
        if let [program] = &report.programs[..]
            && let (Some(peak), Some(faults)) = (peak(program), faults(program))
        {
            self.say(&format!("peak resident {peak}, page faults {faults}"));
        }
        self.levels(report);
    }

    /// From where on the level stands, and whether there are several.
    fn levels(&mut self, report: &Report) {
        for subject in &report.subjects {
            let name = if report.kind == Kind::Suite { case(subject) } else { metric(subject.metric) };
            let told: Vec<String> = [course(subject), several_modes(subject)].into_iter().flatten().collect();
            for sentence in told {
                self.say(&format!("{name}: {sentence}"));
            }
        }
    }

    fn suite(&mut self, report: &Report) {
        self.figures(report, "operation");
        self.text.push('\n');
        self.levels(report);
        for refused in &report.refused {
            self.blank_and_say(&format!("not timed: {refused}; --batch auto allows it"));
        }
    }

    /// The five figures, and the low quantile.
    fn figures(&mut self, report: &Report, head: &'static str) {
        let low = low_name(report.how.low_share);
        let mut whole = Table::plain(&[head, "n", "mean", "min", "max", "std", low, "95 %"], 1);
        let mut narrow = Table::plain(&[head, "n", "mean", "min", "max", "std", low], 1);
        for subject in &report.subjects {
            let scaled = |value: f64| subject.metric.unit().scaled(value);
            let name = if report.kind == Kind::Suite { case(subject) } else { metric(subject.metric) };
            let stat = &subject.stat;
            let mut cells = vec![name, Unit::Count.scaled(stat.n as f64)];
            cells.extend([stat.mean, stat.min, stat.max, stat.std].map(scaled));
            cells.extend(
                subject.low.map_or_else(|| vec!["-".to_owned(); 2], |low| interval(low, subject.metric)),
            );
            narrow.row(cells[..cells.len() - 1].to_vec());
            whole.row(cells);
        }
        // Names are more useful than the interval of the last figure, which the verdict and the JSON have
        // too.
        let table = if whole.width(INDENT) <= self.width { whole } else { narrow };
        self.table("figures", &table);
    }

    fn losses(&mut self, report: &Report) {
        // Of instructions counted by valgrind nothing else is known.
        if report.how.counter.is_some() && report.start.is_none() {
            return;
        }
        let mut table = match report.kind {
            Kind::Suite => Table::plain(&["operation", "outliers", "lost", "to"], 1).with_words_last(),
            _ => Table::plain(&LOSS_HEADS, 1),
        };
        let several = report.subjects.iter().filter(|subject| subject.losses.is_some()).count() > 1;
        for subject in &report.subjects {
            let Some(losses) = &subject.losses else { continue };
            if report.kind == Kind::Suite {
                let count = Unit::Count.scaled(losses.outliers as f64);
                table.row(vec![case(subject), count, share(losses.of_all), greediest(losses)]);
                continue;
            }
            losses.rows(several.then_some(&subject.name)).for_each(|row| table.row(row));
        }
        if table.is_empty() {
            return self.blank_and_say("no outlier lost time");
        }
        self.table("what outliers lost time to", &table);
        if report.kind == Kind::Suite {
            return;
        }
        let of_all = |subject: &Subject| {
            let share = share(subject.losses.as_ref()?.of_all);
            Some(if several { format!("{}: {share}", subject.name) } else { share })
        };
        let of_all: Vec<String> = report.subjects.iter().filter_map(of_all).collect();
        self.say(&format!("of all wall time, that is {}", of_all.join(", ")));
    }

    fn beats(&mut self, report: &Report) {
        let mut table = Table::plain(&BEAT_HEADS, 1);
        let mut searched = Vec::new();
        let several = report.kind != Kind::Program;
        for subject in &report.subjects {
            let Some(beats) = &subject.beats else { continue };
            searched.push(beats.searched_hz);
            beats.rows(several.then_some(&case(subject))).for_each(|row| table.row(row));
        }
        match searched.into_iter().reduce(widest) {
            Some(range) if table.is_empty() => {
                self.blank_and_say(&format!("disturbances that come back regularly: {}", sought(range)));
            }
            _ => self.table("disturbances that come back regularly", &table),
        }
    }

    fn warnings(&mut self, report: &Report) {
        if !report.warnings.is_empty() || report.advice.is_some() {
            self.text.push('\n');
        }
        for warning in &report.warnings {
            self.notice("warning", warning);
        }
        if let Some(advice) = &report.advice {
            self.notice("note", advice);
        }
    }

    fn notice(&mut self, word: &str, sentence: &str) {
        let start = self.text.len();
        self.say(&format!("{word}: {sentence}"));
        let coloured = self.style.notice(word);
        let said = self.text.split_off(start);
        self.text += &said.replacen(word, &coloured, 1);
    }

    /// What follows.
    fn verdict(&mut self, report: &Report, args: &Bench) {
        let mut said = Vec::new();
        for row in compared::decisive(report) {
            said.push(format!("{} ({})", row.verdict, row.metric.words()));
        }
        if report.kind == Kind::Program {
            let decides = report.subjects.iter().find(|subject| subject.metric == args.metric);
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
        said.extend(gates(&report.gates));
        if !args.quiet && !said.is_empty() {
            self.text.push('\n');
        }
        for sentence in said {
            let start = self.text.len();
            self.say_after("", &sentence);
            let said = self.text.split_off(start);
            let lines: Vec<String> = said.lines().map(|line| self.style.bold(line)).collect();
            self.text += &format!("{}\n", lines.join("\n"));
        }
    }
}

/// What the gates say: each that was not passed, or is alone, by itself.
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

/// What a subject is called in tables.
fn case(subject: &Subject) -> String {
    let name = subject.name.split_once('/').map_or(&*subject.name, |(_suite, case)| case);
    if subject.batch > 1 { format!("{name} (of {})", subject.batch) } else { name.to_owned() }
}

pub(super) fn metric(metric: Metric) -> String {
    match metric {
        Metric::Cpu => "CPU".to_owned(),
        Metric::Wall => "wall".to_owned(),
        Metric::Instructions => "instructions".to_owned(),
    }
}

/// How the level came to stand, if that is news.
fn course(subject: &Subject) -> Option<String> {
    let steady = subject.steady.as_ref()?;
    let number = |place: usize| Unit::Count.scaled((place + 1) as f64);
    let ns = |value: f64| subject.metric.unit().scaled(value);
    let last = steady.stretches.last()?.level;
    // The course was found from all stretches before, however many.
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

/// Round which levels the observations cluster, if there are several.
fn several_modes(subject: &Subject) -> Option<String> {
    let modality = subject.modality.as_ref().filter(|modality| modality.is_bimodal())?;
    let mode = |mode: &Mode| format!("{} at {}", share(mode.share), subject.metric.unit().scaled(mode.at));
    let modes: Vec<String> = modality.modes.iter().map(mode).collect();
    Some(format!("several levels, which no single figure describes: {}", modes.join(", ")))
}

/// "12.3 µs" and "12.1 to 12.5 µs".
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

/// "preemption 80 %, minor fault 20 %".
fn greediest(losses: &Losses) -> String {
    let shown = losses.causes.iter().take(CAUSES_SHOWN).filter(|total| total.share >= CAUSE_SHARE_MIN);
    let shown: Vec<String> =
        shown.map(|total| format!("{} {:.0} %", total.cause, total.share * 100.0)).collect();
    shown.join(", ")
}

/// A program's largest resident memory, as far as it is known.
pub(super) fn peak(program: &Program) -> Option<String> {
    let most = if program.peak_is_bound { "≤ " } else { "" };
    Some(format!("{most}{}", Unit::Bytes.scaled(program.peak_bytes?)))
}

/// A program's page faults, likewise.
pub(super) fn faults(program: &Program) -> Option<String> {
    program.faults.map(|faults| Unit::Count.scaled(faults))
}

/// The range that holds both.
fn widest(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.min(other.0), one.1.max(other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_say_their_unit_once() {
        let found = |low, high| interval(Interval { estimate: 12_300.0, low, high }, Metric::Cpu);
        assert_eq!(found(12_100.0, 12_500.0), ["12.3 µs", "12.1 to 12.5 µs"]);
        assert_eq!(found(900.0, 12_500.0), ["12.3 µs", "900 ns to 12.5 µs"]);
    }
}
