//! Readers of what others have written, with bytes that nobody meant: paths of control groups, lists of pods,
//! objects and events of Kubernetes, Slurm's accounting.
//!
//! Any bytes give an answer or an error, never a panic, and what is made of them is whole. The inputs are the
//! files in `corpus`, and changed ones: bits turned, pieces cut and repeated, words put in.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use vellum_fleet::group::{Identity, Place, place};
use vellum_fleet::recommend::containers::{Memory, Remembered};
use vellum_fleet::recommend::decide::History;
use vellum_fleet::recommend::slurm;
use vellum_fleet::{Page, View, readers};

/// The longest piece that is cut or repeated.
const PIECE_MAX: usize = 256;
/// Inputs do not grow beyond this.
const BYTES_MAX: usize = 1 << 16;
/// Numbers at the ends of what readers keep them in, and what else goes wrong in texts.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "1e308",
    "1e309",
    "1e-324",
    "0.1",
    "NaN",
    "inf",
    "\u{feff}",
    "\u{1f600}",
];

/// Words that mean something to an agent's readers.
const NODE_WORDS: &[&str] = &[
    "kubepods.slice/",
    "kubepods/burstable/pod",
    "1f3a9c1e-7d54-4c88-9a51-3b2f4d5e6f70",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "cri-containerd-",
    ".slice",
    ".scope",
    ".service",
    "slurm/uid_1/job_2/step_3",
    "user@1.service/",
    "\\x2d",
    "{\"items\":[",
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}}",
    "\"status\":{\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"x://y\"}]}",
    "null",
];

/// Words that mean something to a recommender's readers.
const RECOMMEND_WORDS: &[&str] = &[
    "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"resourceVersion\":\"7\"},\"spec\":{",
    "\"targetRef\":{\"kind\":\"StatefulSet\",\"name\":\"web\"},",
    "\"recommenders\":[{\"name\":\"vellum\"}]",
    "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"*\",\"minAllowed\":{\"memory\":\"64Mi\"}}]}",
    "\"maxAllowed\":{\"memory\":",
    "\"status\":{\"recommendation\":{\"containerRecommendations\":[",
    "{\"containerName\":\"nginx\",\"target\":{\"memory\":\"115343360\"}}",
    "\"conditions\":[{\"type\":\"RecommendationProvided\",\"status\":\"True\"}]",
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
    "{\"type\":\"ERROR\",\"object\":{\"code\":410}}",
    "1|1000|train|COMPLETED\n",
    "OUT_OF_MEMORY",
    "1.5Gi",
    "1e9",
    "null",
];

/// A list, and paths. A name that comes of them stays within its line of the metrics.
fn node(data: &[u8]) {
    let _ = readers::pods(data, &Identity::Kubernetes { pod: "c".into(), id: "y".into() });
    let Ok(text) = std::str::from_utf8(data) else { return };
    for path in text.lines() {
        if let Place::Job(identity) = place(path) {
            assert!(!identity.name(path).is_empty(), "{path:?}");
        }
    }
    let view = View { name: text.to_owned(), path: text.to_owned(), ..View::default() };
    let metrics = readers::metrics(Page { groups: vec![view.into()], ..Page::default() });
    assert!(metrics.lines().all(|line| line.starts_with("# ") || line.starts_with("vellum_")), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "metrics are whole");
}

/// The advice that is remembered of the one container.
const ADVISED: f64 = 100.0 * 1048576.0;

/// Whatever an object says: a patch is JSON of its version, with numbers in order that are not below the
/// advice unless its own bounds are. An event that can be gone on from has a version. A table has a line a
/// row.
fn recommend(data: &[u8]) {
    let history = History { known_seconds: Some(1e6), advised: Some(ADVISED), ..History::default() };
    let containers = [("nginx".to_owned(), Remembered { history, stalled_under: None })].into();
    let pods = [("web-0".to_owned(), containers)].into();
    let memory = Memory { namespaces: [("shop".to_owned(), pods)].into(), refused: 0 };
    if let Some(patch) = readers::patch(data, &memory) {
        let patch: Value = serde_json::from_str(&patch).expect("a patch is JSON");
        assert!(patch["metadata"]["resourceVersion"].is_string(), "{patch}");
        let entries = patch["status"]["recommendation"]["containerRecommendations"].as_array();
        for entry in entries.into_iter().flatten() {
            let of =
                |number: &str| entry[number]["memory"].as_str().and_then(|text| text.parse::<u64>().ok());
            let numbers = ["lowerBound", "target", "upperBound", "uncappedTarget"].map(of);
            let [Some(lower), Some(target), Some(upper), Some(_)] = numbers else { panic!("{patch}") };
            assert!(lower <= target && target <= upper && upper <= 1 << 60, "{patch}");
        }
    }
    assert!(readers::event(data).is_none_or(|version| !version.is_empty()));
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert!(readers::quantity(text).is_none_or(|bytes| bytes <= 1 << 60), "{text:?}");
    let needs: BTreeMap<String, f64> = [("1".to_owned(), ADVISED)].into();
    let table = slurm::table(&needs, text, 1, 0.1);
    assert_eq!(table.csv().lines().count(), 1 + table.rows.len(), "{table:?}");
    assert!(table.rows.iter().all(|row| row.mib >= 100), "{table:?}");
}

/// The files of a folder of `corpus`.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/corpus").join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// One change to an input, somewhere in it.
#[derive(Debug, Clone)]
enum Change {
    Flip(u8),
    Byte(u8),
    Cut(usize),
    End,
    Repeat(usize, usize),
    Insert(String),
    /// In place of the digits that come next.
    Number(String),
    /// The rest becomes another kept input's.
    Splice(Index),
}

fn change(words: &'static [&'static str]) -> impl Strategy<Value = (Index, Change)> {
    let owned = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let what = prop_oneof![
        (0..8_u8).prop_map(Change::Flip),
        any::<u8>().prop_map(Change::Byte),
        (1..PIECE_MAX).prop_map(Change::Cut),
        Just(Change::End),
        (1..PIECE_MAX, 1..64_usize).prop_map(|(piece, times)| Change::Repeat(piece, times)),
        owned(words).prop_map(Change::Insert),
        owned(NUMBERS).prop_map(Change::Number),
        any::<Index>().prop_map(Change::Splice),
    ];
    (any::<Index>(), what)
}

/// A kept input, or none, after some changes.
fn input(name: &str, words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let mut kept = kept(name);
    assert!(!kept.is_empty(), "{name} has no corpus");
    kept.push(Vec::new());
    let changes = prop::collection::vec(change(words), 0..8);
    (any::<Index>(), changes).prop_map(move |(first, changes)| {
        let mut input = first.get(&kept).clone();
        for (at, change) in changes {
            let at = at.index(input.len() + 1);
            apply(&mut input, at, &change, &kept);
            input.truncate(BYTES_MAX);
        }
        input
    })
}

fn apply(input: &mut Vec<u8>, at: usize, change: &Change, kept: &[Vec<u8>]) {
    let end = |piece: usize| (at + piece).min(input.len());
    match change {
        Change::Flip(bit) => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        Change::Byte(new) => {
            if let Some(byte) = input.get_mut(at) {
                *byte = *new;
            }
        }
        Change::Cut(piece) => drop(input.drain(at..end(*piece))),
        Change::End => input.truncate(at),
        Change::Repeat(piece, times) => {
            let copy = input[at..end(*piece)].repeat(*times);
            input.splice(at..at, copy);
        }
        Change::Insert(word) => drop(input.splice(at..at, word.bytes())),
        Change::Number(number) => {
            let from = at + input[at..].iter().take_while(|byte| !byte.is_ascii_digit()).count();
            let digits = input[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            input.splice(from..from + digits, number.bytes());
        }
        Change::Splice(other) => {
            let other = other.get(kept);
            input.truncate(at);
            input.extend_from_slice(&other[at.min(other.len())..]);
        }
    }
}

#[test]
fn the_kept_inputs_are_read() {
    kept("node").iter().for_each(|input| node(input));
    kept("recommend").iter().for_each(|input| recommend(input));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_agent_reads_any_bytes(input in input("node", NODE_WORDS)) {
        node(&input);
    }

    #[test]
    fn a_recommender_reads_any_bytes(input in input("recommend", RECOMMEND_WORDS)) {
        recommend(&input);
    }
}
