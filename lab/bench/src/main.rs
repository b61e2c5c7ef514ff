//! The command line of `vellum-bench`: makes the plan, runs the campaign, prints the tables.

use anyhow::Context;
use clap::{Parser, Subcommand};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vellum_bench::timing::{self, Found};
use vellum_bench::{
    Campaign, Judged, Missing, Plan, Roster, Section, Sheet, Table, chooses, govern, hardened, lent,
    names_section, numpy, pager, peer, small, watch,
};
use vellum_bench::{advice, gc, heap, programs};
use vellum_campaign::Verdict;
use vellum_measure::Machine;
use vellum_papers::Finding;
use vellum_report::stdout;
use vellum_timing::machine;

/// The longest a single worker may take.
const RUN_ALLOWED: Duration = Duration::from_secs(300);

/// A quick campaign begins no further round after this time: it should end within two minutes, without the
/// build.
const QUICK_BUDGET: Duration = Duration::from_secs(100);

const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 3;
/// Bound of `--rounds`.
const ROUNDS_MAX: u64 = 10_000;

/// Measures Vellum against other allocators, interleaved in one run, and judges each figure by its target.
///
/// Other comparisons run only if named: --only timing (Vellum's timings beside other tools), gc (Vellum's
/// collector against libgc), heap (`vellum heap` against heaptrack and memray), pager (Vellum's pager against
/// the kernel's; root), advice (programs under the memory limit that `vellum run` recommends).
#[derive(Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Fewer sizes and shorter runs: done within two minutes
    #[arg(long)]
    quick: bool,
    /// Write every run and every line to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only this section (large, growth, idle, small), or the cells whose names contain
    /// this. These sections run only if named: timing, watch, govern, pager, numpy, lent, hardened, gc, heap,
    /// programs, advice
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Compare only these allocators
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(peer::NAMES))]
    peers: Vec<String>,
    /// Rounds of each cell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROUNDS_MAX))]
    rounds: Option<u64>,
    /// Seed of the orders and of the workloads' random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure this library as Vellum instead of the one beside this program
    #[arg(long, value_name = "FILE")]
    vellum: Option<PathBuf>,
    /// Write the tables in Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// List the cells that would be run, and end
    #[arg(long)]
    list: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run one workload in this process and print its figures
    #[command(hide = true)]
    Work {
        name: String,
        /// name=value
        parameters: Vec<String>,
    },
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(Command::Work { name, parameters }) = &options.command {
        vellum_campaign::worker::say_panics_in_a_line();
        println!("{}", vellum_bench::work(name, parameters)?);
        return Ok(());
    }
    let named = |section| options.only.as_deref().is_some_and(|only| names_section(only, section));
    if named(advice::SECTION) {
        return memory_to_give(&options);
    }
    let of_timings = named(timing::SECTION);
    let of_governing = named(govern::GOVERN);
    let of_watching = of_governing || named(watch::WATCH);
    let of_holders = named(heap::SECTION);
    let of_collectors = named(gc::SECTION);
    let of_programs = named(programs::SECTION);
    let (full, quick) = match (of_timings, of_collectors, of_watching) {
        (true, ..) => (timing::REPEATS, timing::REPEATS_QUICK),
        (_, true, _) => (gc::ROUNDS, gc::ROUNDS_QUICK),
        _ if of_holders => (heap::ROUNDS, heap::ROUNDS_QUICK),
        _ if of_programs => (programs::ROUNDS, programs::ROUNDS_QUICK),
        (.., true) => (watch::ROUNDS, watch::ROUNDS_QUICK),
        _ => (ROUNDS, ROUNDS_QUICK),
    };
    let usual = if options.quick { quick } else { full };
    let mut plan = Plan {
        worker: std::env::current_exe().context("finding this executable, which is also the worker")?,
        roster: match (of_timings || of_collectors || of_holders, of_watching) {
            (true, _) => Roster::default(),
            // No allocators are compared, so none is built or searched.
            (_, true) => peer::discover(None),
            _ => roster(&options),
        },
        quick: options.quick,
        rounds: options.rounds.map_or(usual, |rounds| rounds as usize),
        seed: options.seed,
        threads: std::thread::available_parallelism().map_or(2, usize::from).max(2),
        mimalloc_bench: None,
    };
    if of_collectors {
        return collectors(&options, &plan);
    }
    if of_holders {
        return holders(&options, &plan);
    }
    if of_programs {
        return whole_programs(&options, &plan);
    }
    let checkout = small::checkout();
    plan.mimalloc_bench = checkout.as_ref().ok().cloned();
    let mut sections = if of_timings { Vec::new() } else { vellum_bench::suite(&plan) };
    if of_timings || options.list {
        sections.push(timing::section(&plan));
    }
    if options.list || of_watching {
        sections.push(watch::section(&plan));
        sections.push(govern::section(&plan));
    }
    if options.list || named(pager::PAGER) {
        sections.push(pager::section(&plan));
    }
    if options.list || named(numpy::NUMPY) {
        sections.push(numpy::section(&plan));
    }
    if options.list || named(lent::LENT) {
        sections.push(lent::section(&plan));
    }
    let mut missing = plan.roster.missing.clone();
    if let Err(absent) = checkout {
        let is_asked_for = named(small::SMALL) || named(hardened::HARDENED);
        anyhow::ensure!(options.list || !is_asked_for, "{} is missing: {}", absent.name, absent.cure);
        if options.only.is_none() {
            missing.push(absent);
        }
    }
    if options.list || named(hardened::HARDENED) {
        let (peers, absent): (Vec<_>, Vec<_>) = peer::hardened().into_iter().partition(Result::is_ok);
        let peers: Vec<_> = peers.into_iter().flatten().collect();
        sections.push(hardened::section(&plan, &peers));
        plan.roster.peers.extend(peers);
        missing.extend(absent.into_iter().filter_map(Result::err));
    }
    if let Some(only) = &options.only {
        sections = vellum_bench::only(sections, only);
        anyhow::ensure!(
            !sections.is_empty(),
            "--only {only}: no section and no cell has that name; see --list"
        );
    }
    if options.list {
        let named = |section: &Section| -> Vec<(&str, String)> {
            section.cells.iter().map(|cell| (section.name, cell.name.clone())).collect()
        };
        let mut lines: Vec<(&str, String)> = sections.iter().flat_map(named).collect();
        if options.only.is_none() {
            lines.extend(gc::names().into_iter().map(|name| (gc::SECTION, name)));
            lines.extend(heap::names().into_iter().map(|name| (heap::SECTION, name)));
            lines.extend(programs::names().into_iter().map(|name| (programs::SECTION, name)));
            lines.extend(advice::names().into_iter().map(|name| (advice::SECTION, name)));
        }
        return list(lines);
    }
    for section in sections.iter_mut().filter(|section| section.name == timing::SECTION) {
        missing.extend(timing::prepare(&plan.worker, &mut section.cells));
    }
    campaign(&options, &plan, &sections, &missing, || Ok(Found::default()))
}

/// Prints names of cells, each after its section's name. The reader may stop early.
fn list<'a>(cells: impl IntoIterator<Item = (&'a str, String)>) -> anyhow::Result<()> {
    let lines: String = cells.into_iter().map(|(section, cell)| format!("{section:10} {cell}\n")).collect();
    Ok(stdout::write_all(lines.as_bytes())?)
}

/// Handles `--list` for a section that runs only if named: lists the chosen cells and returns true.
fn is_listed(options: &Options, section: &str, names: Vec<String>) -> anyhow::Result<bool> {
    let only = options.only.as_deref();
    let chosen: Vec<_> = names.into_iter().filter(|name| chooses(only, section, name)).collect();
    anyhow::ensure!(
        !chosen.is_empty(),
        "--only {}: no section and no cell has that name; see --list",
        only.unwrap_or_default()
    );
    if options.list {
        list(chosen.into_iter().map(|name| (section, name)))?;
    }
    Ok(options.list)
}

/// Runs the section `gc`. Its programs are built first, and removed at its end.
fn collectors(options: &Options, plan: &Plan) -> anyhow::Result<()> {
    if is_listed(options, gc::SECTION, gc::names())? {
        return Ok(());
    }
    let prepared = gc::prepare(plan, &library(options, plan), options.only.as_deref())?;
    campaign(options, plan, std::slice::from_ref(&prepared.section), &prepared.missing, || {
        Ok(Found::default())
    })
}

/// Vellum's library: the given file, or the one beside this executable.
fn library(options: &Options, plan: &Plan) -> PathBuf {
    options.vellum.clone().unwrap_or_else(|| plan.worker.with_file_name("libvellum.so"))
}

/// Runs the section `heap`. Its inputs are made first, and removed at its end.
fn holders(options: &Options, plan: &Plan) -> anyhow::Result<()> {
    if is_listed(options, heap::SECTION, heap::names())? {
        return Ok(());
    }
    let prepared = heap::prepare(plan, &library(options, plan), options.only.as_deref())?;
    campaign(options, plan, std::slice::from_ref(&prepared.section), &prepared.missing, || {
        let (tables, goals) = prepared.besides()?;
        Ok(Found::besides(&tables, goals))
    })
}

/// Runs the section `programs`. Its inputs are made first, and removed at its end.
fn whole_programs(options: &Options, plan: &Plan) -> anyhow::Result<()> {
    if is_listed(options, programs::SECTION, programs::names())? {
        return Ok(());
    }
    let prepared = programs::prepare(plan, options.only.as_deref()).context("making the programs' inputs")?;
    campaign(options, plan, std::slice::from_ref(&prepared.section), &prepared.missing, || {
        Ok(Found::default())
    })
}

/// Runs the section `advice`: programs under limits, which needs root.
fn memory_to_give(options: &Options) -> anyhow::Result<()> {
    if is_listed(options, advice::SECTION, advice::names())? {
        return Ok(());
    }
    let vellum = beside("vellum")?;
    let usual = if options.quick { advice::ROUNDS_QUICK } else { advice::ROUNDS };
    let library = options.vellum.clone().unwrap_or_else(|| vellum.with_file_name("libvellum.so"));
    let asked = asked(options, usual, vellum);
    let finding = live(|tell| advice::run(&asked, &library, tell))?;
    tell(options, &finding, advice::SCHEMA, asked.rounds)
}

/// The options of a section of programs under limits.
fn asked(options: &Options, usual: usize, vellum: PathBuf) -> advice::Asked<'_> {
    let rounds = options.rounds.map_or(usual, |rounds| rounds as usize);
    advice::Asked { only: options.only.as_deref(), rounds, seed: options.seed, vellum }
}

/// The file of this name beside this executable.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("finding this executable, beside which `vellum` is")?;
    Ok(here.with_file_name(name))
}

/// Calls `run` and shows its current step on a terminal.
fn live<T>(run: impl FnOnce(&mut dyn FnMut(&str)) -> T) -> T {
    let live = std::io::stderr().is_terminal();
    let done = run(&mut |what| {
        if live {
            eprint!("\r\x1b[K{what}");
        }
    });
    if live {
        eprint!("\r\x1b[K");
    }
    done
}

/// Prints a finding, and writes it as JSON if `--json` was given.
fn tell(options: &Options, finding: &Finding, schema: &str, rounds: usize) -> anyhow::Result<()> {
    print!("{}", finding.text());
    if let Some(file) = &options.json {
        let value = serde_json::json!({
            "schema": schema, "machine": machine::read(), "rounds": rounds, "seed": options.seed, "finding": finding,
        });
        let text = serde_json::to_string_pretty(&value).context("writing the result as JSON")?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn roster(options: &Options) -> Roster {
    let mut roster = peer::discover(options.vellum.as_deref());
    if !options.peers.is_empty() {
        roster.keep(&options.peers);
    }
    roster
}

/// Runs the cells of all sections, makes the measurements without a cell, and reports.
fn campaign(
    options: &Options,
    plan: &Plan,
    sections: &[Section],
    missing: &[Missing],
    besides: impl FnOnce() -> anyhow::Result<Found>,
) -> anyhow::Result<()> {
    let machine = machine::read();
    head(&machine, plan, missing);
    let begun = Instant::now();
    let cells: Vec<_> = sections.iter().flat_map(|section| section.cells.iter().cloned()).collect();
    let live = std::io::stderr().is_terminal();
    // Rounds given by `--rounds` are all run.
    let budget = (plan.quick && options.rounds.is_none()).then_some(QUICK_BUDGET);
    let campaign = Campaign { seed: plan.seed, allowed: RUN_ALLOWED, budget };
    let sheets = campaign.run(&cells, |done, total, what| {
        if live {
            eprint!("\r\x1b[K{done} of {total}: {what}");
        }
    });
    if live {
        eprint!("\r\x1b[K");
    }
    let asked: usize = cells.iter().map(|cell| cell.rounds * cell.arms.len()).sum();
    let left_out = asked - sheets.iter().map(Sheet::made).sum::<usize>();
    let tables: Vec<(Table, Vec<Judged>)> = sections
        .iter()
        .flat_map(|section| &section.tables)
        .map(|table| (table.clone(), table.judged(&sheets, plan.seed)))
        .collect();
    let mut found = Found::of(&sheets, plan.seed);
    let besides = besides()?;
    if !besides.text.is_empty() {
        let between = if found.text.is_empty() { "" } else { "\n" };
        found.text = format!("{}{between}{}", found.text, besides.text);
        found.goals.extend(besides.goals);
    }
    if let Some(file) = &options.markdown {
        let shown = tables.iter().filter(|(_, lines)| !lines.is_empty());
        let texts: Vec<String> = shown.map(|(table, lines)| table.markdown(lines)).collect();
        std::fs::write(file, texts.join("\n")).with_context(|| format!("writing {}", file.display()))?;
    }
    let mut out = std::io::stdout().lock();
    for (table, lines) in tables.iter().filter(|(_, lines)| !lines.is_empty()) {
        writeln!(out, "\n{}", table.text(lines).trim_end())?;
    }
    if !found.text.is_empty() {
        writeln!(out, "\n{}", found.text.trim_end())?;
    }
    let verdicts = tables.iter().flat_map(|(_, lines)| lines.iter().filter_map(Judged::verdict));
    let verdicts: Vec<Verdict> = verdicts.chain(found.goals.iter().map(|goal| goal.verdict)).collect();
    writeln!(out, "\n{} in {:.0} s", summary(&verdicts), begun.elapsed().as_secs_f64())?;
    if left_out > 0 {
        writeln!(
            out,
            "{left_out} runs of the later rounds left out for lack of time; --rounds {} runs all",
            plan.rounds
        )?;
    }

    if let Some(file) = &options.json {
        let settings = [
            ("quick", plan.quick.into()),
            ("rounds", plan.rounds.into()),
            ("seed", plan.seed.into()),
            ("threads", plan.threads.into()),
            ("only", options.only.clone().into()),
            ("runs_left_out", left_out.into()),
        ];
        let value = vellum_bench::json(
            &machine,
            (&plan.roster.peers, missing),
            &settings,
            &sheets,
            &tables,
            &found.goals,
        );
        let text = serde_json::to_string_pretty(&value).context("writing the result as JSON")?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn head(machine: &Machine, plan: &Plan, missing: &[Missing]) {
    println!(
        "{}, {} processors, {} GiB, Linux {}, huge pages: {}",
        machine.processor,
        machine.processors,
        machine.memory_bytes >> 30,
        machine.kernel,
        machine.huge_pages
    );
    let peers: Vec<String> =
        plan.roster.peers.iter().map(|peer| format!("{} {}", peer.name, peer.version)).collect();
    if peers.is_empty() {
        println!("{} repeats of everything in random order, seed {}", plan.rounds, plan.seed);
    } else {
        println!("peers: {}; {} rounds, seed {}", peers.join(", "), plan.rounds, plan.seed);
        println!(
            "medians over the rounds; ratio and 95 % interval against the arm named in the target; A/A: a second arm of \
             glibc, of Vellum, over the first; ~: less than the noise of this run from the target"
        );
    }
    for missing in missing {
        println!("missing: {} ({})", missing.name, missing.cure);
    }
}

fn summary(verdicts: &[Verdict]) -> String {
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    format!(
        "targets: {} met, {} met within noise, {} missed within noise, {} missed, {} without data",
        count(Verdict::Met),
        count(Verdict::MetWithinNoise),
        count(Verdict::MissedWithinNoise),
        count(Verdict::Missed),
        count(Verdict::NoData)
    )
}
