//! The command line of `vellum-bench`: chooses the measurements, runs them, prints the tables.

use anyhow::Context;
use clap::{Parser, Subcommand};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vellum_bench::timing::Found;
use vellum_bench::{
    Asked, Campaign, Judged, Missing, Peers, Plan, Prepared, Roster, Sheet, TOPICS, Table, Topic, advice,
    chooses, names_section, peer,
};
use vellum_campaign::Verdict;
use vellum_measure::Machine;
use vellum_report::stdout;
use vellum_timing::machine;

/// The longest a single worker may take.
const RUN_ALLOWED: Duration = Duration::from_secs(300);

/// A quick campaign begins no further round after this time: it should end within two minutes, without the
/// build.
const QUICK_BUDGET: Duration = Duration::from_secs(100);

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
    let only = options.only.as_deref();
    let worker = std::env::current_exe().context("finding this executable, which is also the worker")?;
    let library = options.vellum.clone().unwrap_or_else(|| worker.with_file_name("libvellum.so"));
    let topics = Topic::chosen(only);
    // A section that runs only if named runs alone.
    let [full, quick] = topics[0].rounds;
    let usual = if options.quick { quick } else { full };
    let checkout = vellum_bench::checkout();
    let plan = Plan {
        worker,
        library,
        roster: roster(&options, topics[0].peers),
        quick: options.quick,
        rounds: options.rounds.map_or(usual, |rounds| rounds as usize),
        seed: options.seed,
        threads: std::thread::available_parallelism().map_or(2, usize::from).max(2),
        mimalloc_bench: checkout.as_ref().ok().cloned(),
    };
    let is_of_advice = only.is_some_and(|only| names_section(only, advice::SECTION));
    let listed = if only.is_none() { TOPICS.iter().collect() } else { topics.iter().collect::<Vec<_>>() };
    let named =
        |topic: &&Topic| topic.names(&plan).into_iter().map(|cell| (topic.name, cell)).collect::<Vec<_>>();
    let mut cells: Vec<(&str, String)> = listed.iter().flat_map(named).collect();
    if only.is_none() || is_of_advice {
        cells.extend(advice::names().into_iter().map(|cell| (advice::SECTION, cell)));
    }
    cells.retain(|(section, cell)| chooses(only, section, cell));
    let mut missing = plan.roster.missing.clone();
    if let Err(absent) = checkout {
        // Without it the sections `small` and `hardened` have no cells.
        let lacks_it = cells.is_empty() && ["small", "hardened"].contains(&topics[0].name);
        anyhow::ensure!(!lacks_it, "{} is missing: {}", absent.name, absent.cure);
        if only.is_none() {
            missing.push(absent);
        }
    }
    let word = only.unwrap_or_default();
    anyhow::ensure!(!cells.is_empty(), "--only {word}: no section and no cell has that name; see --list");
    if options.list {
        return list(cells);
    }
    if is_of_advice {
        return memory_to_give(&options, &plan);
    }
    let prepared = topics.iter().map(|topic| topic.prepare(&plan, only)).collect::<anyhow::Result<_>>()?;
    campaign(&options, &plan, prepared, missing)
}

/// Prints names of cells, each after its section's name. The reader may stop early.
fn list<'a>(cells: impl IntoIterator<Item = (&'a str, String)>) -> anyhow::Result<()> {
    let lines: String = cells.into_iter().map(|(section, cell)| format!("{section:10} {cell}\n")).collect();
    Ok(stdout::write_all(lines.as_bytes())?)
}

/// Runs the section `advice`: programs under limits, which needs root.
fn memory_to_give(options: &Options, plan: &Plan) -> anyhow::Result<()> {
    let usual = if options.quick { advice::ROUNDS_QUICK } else { advice::ROUNDS };
    let asked = Asked {
        only: options.only.as_deref(),
        rounds: options.rounds.map_or(usual, |rounds| rounds as usize),
        seed: options.seed,
        vellum: plan.worker.with_file_name("vellum"),
    };
    let finding = advice::run(&asked, &plan.library, show)?;
    show("");
    print!("{}", finding.text());
    write_json(options, || {
        serde_json::json!({
            "schema": advice::SCHEMA, "machine": machine::read(), "rounds": asked.rounds, "seed": options.seed,
            "finding": finding,
        })
    })
}

/// Shows the current step on a terminal.
fn show(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Writes the result as JSON, if `--json` was given.
fn write_json(options: &Options, result: impl FnOnce() -> serde_json::Value) -> anyhow::Result<()> {
    let Some(file) = &options.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(&result()).context("writing the result as JSON")?;
    std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
}

fn roster(options: &Options, peers: Peers) -> Roster {
    if peers == Peers::None {
        return Roster::default();
    }
    let mut roster = peer::discover(options.vellum.as_deref());
    if !options.peers.is_empty() {
        roster.keep(&options.peers);
    }
    if peers == Peers::Hardened {
        roster.add(peer::hardened());
    }
    roster
}

/// Runs the cells of all sections, makes the measurements without a cell, and reports.
fn campaign(
    options: &Options,
    plan: &Plan,
    prepared: Vec<Prepared>,
    mut missing: Vec<Missing>,
) -> anyhow::Result<()> {
    missing.extend(prepared.iter().flat_map(|one| one.missing.iter().cloned()));
    let machine = machine::read();
    head(&machine, plan, &missing);
    let begun = Instant::now();
    let cells: Vec<_> = prepared.iter().flat_map(|one| one.section.cells.iter().cloned()).collect();
    // Rounds given by `--rounds` are all run.
    let budget = (plan.quick && options.rounds.is_none()).then_some(QUICK_BUDGET);
    let campaign = Campaign { seed: plan.seed, allowed: RUN_ALLOWED, budget };
    let sheets = campaign.run(&cells, |done, total, what| show(&format!("{done} of {total}: {what}")));
    show("");
    let asked: usize = cells.iter().map(|cell| cell.rounds * cell.arms.len()).sum();
    let left_out = asked - sheets.iter().map(Sheet::made).sum::<usize>();
    let tables: Vec<(Table, Vec<Judged>)> = prepared
        .iter()
        .flat_map(|one| &one.section.tables)
        .map(|table| (table.clone(), table.judged(&sheets, plan.seed)))
        .collect();
    let mut found = Found::of(&sheets, plan.seed);
    for one in prepared {
        found.add((one.finish)()?);
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

    write_json(options, || {
        let settings = [
            ("quick", plan.quick.into()),
            ("rounds", plan.rounds.into()),
            ("seed", plan.seed.into()),
            ("threads", plan.threads.into()),
            ("only", options.only.clone().into()),
            ("runs_left_out", left_out.into()),
        ];
        let peers = (&plan.roster.peers[..], &missing[..]);
        vellum_bench::json(&machine, peers, &settings, &sheets, &tables, &found.goals)
    })
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
