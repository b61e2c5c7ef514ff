//! Tests of `vellum plan`. On small fleets its choice of sizes is compared with every possible one; on larger
//! fleets, invariants are checked. Polars reads and writes the same files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_fleet::plan::{Choice, Fleet, POINTS, Row, Writer, choose, each, nodes, peak, read};
use vellum_random::{Rng, test_seed};

const MIB: f64 = 1048576.0;
const DELAY: f64 = 1e-3;

/// A random valid curve: working sets rise, faults fall.
fn curve(random: &mut Rng, points: usize) -> Vec<[f64; 3]> {
    let (mut bytes, mut faults) = ((1.0 + random.unit() * 64.0) * MIB, 0.0);
    let mut curve: Vec<[f64; 3]> = (0..points)
        .map(|at| {
            bytes *= 1.0 + random.unit() * random.unit() * 0.5;
            [0.1 * f64::from(1 << at), bytes.round(), 0.0]
        })
        .collect();
    for point in curve.iter_mut().rev() {
        point[2] = faults;
        faults += random.unit() * random.unit() * 60.0;
    }
    curve
}

fn fleet(random: &mut Rng, containers: usize, points: usize) -> (Fleet, Vec<Row>) {
    let mut fleet = Fleet::new(DELAY);
    let mut rows = Vec::new();
    for number in 0..containers {
        for hour in 0..1 + random.below(3) as i64 {
            let row = Row {
                hour_ms: (1000 + hour) * 3_600_000,
                node: "n".into(),
                owner: format!("o{}", number % 2),
                name: format!("c{number}"),
                cpu_seconds: 10.0 + random.unit() * 3000.0,
                resident_bytes: 1e9,
                curve: curve(random, points),
            };
            fleet.add(&row);
            rows.push(row);
        }
    }
    (fleet, rows)
}

/// The least byte-hours of all choices.
fn best(fleet: &Fleet, bound: f64) -> f64 {
    fn go(fleet: &Fleet, number: usize, left: f64, spent: f64, best: &mut f64) {
        let Some(container) = fleet.containers.get(number) else {
            *best = best.min(spent);
            return;
        };
        for size in 0..container.sizes() {
            let cost = spent + container.size(size) * f64::from(container.hours);
            if cost >= *best {
                break;
            }
            if container.lost(size) <= left {
                go(fleet, number + 1, left - container.lost(size), cost, best);
            }
        }
    }
    let mut best = f64::INFINITY;
    go(fleet, 0, bound, 0.0, &mut best);
    best
}

fn holds(fleet: &Fleet, choice: &Choice, bound: f64) {
    let each = || choice.sizes.iter().zip(&fleet.containers);
    let most = each().all(|(size, it)| *size as usize == it.sizes() - 1);
    assert!(choice.lost <= bound * (1.0 + 1e-9) + 1e-9 || most, "{} of {bound}", choice.lost);
    let cost: f64 = each().map(|(size, it)| it.size(*size as usize) * f64::from(it.hours)).sum();
    assert!((cost - choice.byte_hours).abs() <= cost * 1e-9);
}

#[test]
fn no_choice_of_a_small_fleet_is_better_by_two_percent() {
    let seed = test_seed(None);
    println!("VELLUM_TEST_SEED={seed}");
    let mut random = Rng::new(seed);
    let mut worst = 1.0_f64;
    for round in 0..300 {
        let (fleet, _) = fleet(&mut random, 2 + round % 3, 3 + round % 4);
        for part in [0.01, 0.02, 0.05] {
            let bound = part * fleet.cpu_seconds();
            let choice = choose(&fleet, part);
            holds(&fleet, &choice, bound);
            let off = choice.byte_hours / best(&fleet, bound);
            assert!(off <= 1.02, "seed {seed}, round {round}, {part}: {off}");
            assert!(choice.least <= choice.byte_hours / off * (1.0 + 1e-9), "no choice is below the bound");
            worst = worst.max(off);
            let alone = each(&fleet, part);
            assert!(alone.lost <= bound * (1.0 + 1e-9) && choice.byte_hours <= alone.byte_hours * 1.02);
        }
    }
    println!("at worst {:.3} % more than the least", (worst - 1.0) * 100.0);
}

#[test]
fn a_large_fleet_is_close_to_the_bound() {
    let seed = test_seed(None);
    let mut random = Rng::new(seed);
    for containers in [33, 100, 1000] {
        let (fleet, _) = fleet(&mut random, containers, POINTS);
        let choice = choose(&fleet, 0.02);
        holds(&fleet, &choice, 0.02 * fleet.cpu_seconds());
        let off = choice.byte_hours / choice.least;
        assert!((1.0..1.02).contains(&off), "seed {seed}, {containers}: {off}");
    }
}

#[test]
fn losses_follow_the_curve_and_sizes_are_close() {
    let seed = test_seed(None);
    let mut random = Rng::new(seed);
    for _ in 0..200 {
        let (fleet, rows) = fleet(&mut random, 1, POINTS);
        let container = &fleet.containers[0];
        for number in 0..container.sizes() {
            let bytes = container.size(number);
            // Between the losses at the neighbouring points.
            let of = |row: &Row| {
                let column = |at: usize, unit: f64| {
                    row.curve.iter().map(|point| point[at] / unit).collect::<Vec<f64>>()
                };
                let curve =
                    vellum_workset::Curve::of_counts(&column(0, 1.0), &column(1, 4096.0), &column(2, 1.0))
                        .unwrap();
                let lost = |point: &[f64; 3]| curve.slowdown(point[1] / 4096.0, DELAY).part * row.cpu_seconds;
                let above = row.curve.iter().position(|point| point[1] >= bytes);
                let less = above.map_or(0.0, |at| lost(&row.curve[at]));
                let more = above.map_or(0.0, |at| lost(&row.curve[at.saturating_sub(1)]));
                (less, more)
            };
            let (less, more) =
                rows.iter().map(of).fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
            let got = container.lost(number);
            assert!(
                got >= less - 1e-9 && got <= more + 1e-9,
                "seed {seed}, {number}: {got}, {less} to {more}"
            );
        }
        let most = rows.iter().map(|row| row.curve[POINTS - 1][1]).fold(0.0, f64::max);
        let last = container.size(container.sizes() - 1);
        assert!(last >= most * 0.999 && last <= most * 1.012, "{last} {most}");
    }
}

#[test]
fn invalid_rows_are_left_out() {
    let good = Row {
        hour_ms: 3_600_000,
        name: "c".into(),
        cpu_seconds: 1.0,
        curve: vec![[0.1, 1e6, 10.0], [0.2, 2e6, 1.0]],
        ..Row::default()
    };
    let mut fleet = Fleet::new(DELAY);
    let with = |change: &dyn Fn(&mut Row)| {
        let mut row = good.clone();
        change(&mut row);
        row
    };
    let wrong = [
        with(&|row| row.curve.clear()),
        with(&|row| row.curve[1][1] = f64::NAN),
        with(&|row| row.curve[1][1] = 5.0),
        with(&|row| row.curve[0][2] = f64::INFINITY),
        with(&|row| row.curve[0][1] = -1.0),
        with(&|row| row.cpu_seconds = -1.0),
        with(&|row| row.resident_bytes = 1e300),
    ];
    wrong.iter().for_each(|row| fleet.add(row));
    assert_eq!((fleet.seen.rows, fleet.seen.left_out, fleet.containers.len()), (0, 7, 0));
    fleet.add(&good);
    fleet.add(&good);
    fleet.add(&with(&|row| row.hour_ms = i64::MAX));
    assert_eq!(
        (fleet.seen.rows, fleet.seen.left_out),
        (1, 9),
        "an hour counts once, and none in another age"
    );
}

#[test]
fn nodes_hold_the_hour_that_needs_most() {
    let mut fleet = Fleet::new(DELAY);
    for (number, mib) in [600.0, 500.0, 400.0, 300.0, 200.0, 1500.0].into_iter().enumerate() {
        let hours: &[i64] = if number == 5 { &[9] } else { &[7, 200] };
        for hour in hours {
            fleet.add(&Row {
                hour_ms: hour * 3_600_000,
                name: number.to_string(),
                cpu_seconds: 1.0,
                curve: vec![[0.1, mib * MIB, 0.0]],
                ..Row::default()
            });
        }
    }
    let choice = choose(&fleet, 0.01);
    let (hour, bytes) = peak(&fleet, &choice).unwrap();
    assert!(hour == 7 || hour == 200);
    assert!((bytes / MIB - 2000.0).abs() < 30.0, "{bytes}");
    let held = nodes(&fleet, &choice, hour, 1030.0 * MIB);
    assert_eq!((held.count, held.least, held.too_large), (2, 2, 0));
    let held = nodes(&fleet, &choice, hour, 450.0 * MIB);
    assert_eq!((held.count, held.too_large), (3, 2));
}

fn python() -> Option<PathBuf> {
    let named = std::env::var_os("VELLUM_TEST_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import polars"]).output().ok()?;
    has.status.success().then_some(python)
}

#[test]
fn polars_and_vellum_read_each_others_files() {
    let Some(python) = python() else {
        return vellum_skip::skip(
            "polars cannot be imported (pip install polars, or name a Python that has it: VELLUM_TEST_PYTHON)",
        );
    };
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours.parquet"), folder.path().join("theirs.parquet"));
    let mut random = Rng::new(7);
    let (fleet, rows) = fleet(&mut random, 50, 5);
    let mut writer = Writer::new(File::create(&ours).unwrap()).unwrap();
    rows.iter().for_each(|row| writer.push(row.clone()).unwrap());
    writer.finish().unwrap();
    let script = r#"
import sys, polars
table = polars.read_parquet(sys.argv[1])
question = "select owner, count(*) as n, sum(cpu_seconds) as cpu, max(bytes_5) as most, count(bytes_6) as gone from curves group by owner order by owner"
answer = polars.SQLContext(curves=table).execute(question, eager=True)
for row in answer.rows(): print(*row)
assert str(table.schema["hour"]).startswith("Datetime"), table.schema
table.reverse().write_parquet(sys.argv[2], compression="snappy")
"#;
    let ran = Command::new(python).args(["-c", script]).args([&ours, &theirs]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    for (number, line) in said.lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let mine = || rows.iter().filter(|row| row.owner == format!("o{number}"));
        assert_eq!(
            (words[0], words[1], words[4]),
            (format!("o{number}").as_str(), mine().count().to_string().as_str(), "0")
        );
        let cpu: f64 = mine().map(|row| row.cpu_seconds).sum();
        assert!((words[2].parse::<f64>().unwrap() - cpu).abs() < 1e-6 * cpu);
        let most = mine().map(|row| row.curve[4][1]).fold(0.0, f64::max);
        assert_eq!(words[3].parse::<f64>().unwrap(), most);
    }
    let mut again = Fleet::new(DELAY);
    assert_eq!(read(Path::new(&theirs), |row| again.add(row)).unwrap(), rows.len() as u64);
    let (a, b) = (choose(&fleet, 0.02), choose(&again, 0.02));
    assert!((a.byte_hours - b.byte_hours).abs() < 0.02 * a.byte_hours);
}
