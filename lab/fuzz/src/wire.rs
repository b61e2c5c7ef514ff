//! Fuzz targets for data that another process wrote and may have damaged: reports, shared memory, profiles.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;
use vellum_cost::readers::part_of_profile;
use vellum_cost::{LedgerFile, Sources, profile};
use vellum_process::Symbols;
use vellum_wire::advice::{Report, Target};
use vellum_wire::cost::{ASKS_AT, CHUNKS_AT, GRAIN, LEDGER_MAGIC, LEDGER_VERSION};
use vellum_wire::held::{HEAD_BYTES as HEAD_BYTES_OF_PART, STACK_WORDS};
use vellum_wire::{Board, Counter, ExportedCounters, PAUSE_BUCKETS, SIZE_BUCKETS};

/// Reports, targets and exported counters; the value read is written and read again.
pub fn advice(data: &[u8]) {
    if let Some(report) = Report::decode(data) {
        assert_eq!(Report::decode(&report.encode()), Some(report), "read again");
    }
    if let Some(target) = Target::decode(data) {
        assert_eq!(Target::decode(&target.encode()), Some(target), "read again");
    }
    if let Some(door) = data.first_chunk::<{ ExportedCounters::BYTES }>() {
        let _ = ExportedCounters::read(door);
    }
}

/// A board of this length; every claimed slot is read.
pub fn board(data: &[u8]) {
    #[repr(C, align(64))]
    #[derive(Clone, Copy)]
    struct Line([u8; 64]);
    let mut memory: Vec<Line> = data
        .chunks(64)
        .map(|piece| {
            let mut line = Line([0; 64]);
            line.0[..piece.len()].copy_from_slice(piece);
            line
        })
        .collect();
    // SAFETY: the memory has at least this many bytes, is aligned, lives here and is only used through this
    // board.
    let Some(board) = (unsafe { Board::open(memory.as_mut_ptr().cast(), data.len()) }) else { return };
    let _ = (board.claim(), board.unseated());
    for slot in board.claimed() {
        let _ = (slot.comm_bytes(), slot.attach());
        Counter::ALL.iter().for_each(|counter| slot.add(*counter, u64::MAX));
        let _ = (0..SIZE_BUCKETS).map(|bucket| slot.size_count(bucket)).fold(0, u64::wrapping_add);
        let _ = (0..PAUSE_BUCKETS).map(|bucket| slot.pause_count(bucket)).fold(0, u64::wrapping_add);
    }
}

/// Bytes of an input that become the head of a part; the rest of that page is zero.
const PART_HEAD_BYTES: usize = 128;

/// A process's part of a heap profile, with this head and these entries. The reader must not count more
/// entries than there are.
pub fn held(data: &[u8]) {
    let (head, entries) = data.split_at(data.len().min(PART_HEAD_BYTES));
    let mut part = head.to_vec();
    part.resize(HEAD_BYTES_OF_PART, 0);
    part.extend_from_slice(entries);
    let (stacks, frames) = part_of_profile(&part);
    let words = entries.len() / 8;
    assert!(stacks * STACK_WORDS + frames <= words, "{stacks} stacks, {frames} frames in {words} words");
}

/// Bytes of an input for the ledger's head; the next bytes are its first requests.
const HEAD_BYTES: usize = 128;
const ASKS_BYTES: usize = 128;
/// Each further piece is the beginning of a grain: grains are long, and mostly empty.
const GRAIN_BYTES: usize = 1024;
const GRAINS_USED_MAX: usize = 16;
/// Limit of the grains that the head claims and the reader reads: a target that reads a GiB of zeros each
/// time would try few inputs.
const GRAINS_CLAIMED_MAX: u64 = 32;

thread_local! {
    /// A ledger is a file of a GiB, nearly all of it a hole; each thread makes one.
    static LEDGER: Cell<Option<(TempDir, LedgerFile)>> = const { Cell::new(None) };
}

/// A ledger with this head, requests and grains, read up to its profile. Its magic number and version are
/// always valid.
pub fn ledger(data: &[u8]) {
    // Taken out during its use, so that a ledger left by a panic is not used again.
    let (place, ledger) = LEDGER.take().unwrap_or_else(|| {
        let place = tempfile::tempdir().expect("a directory for temporary files");
        let ledger = LedgerFile::create(place.path(), true, 1000).expect("a ledger");
        (place, ledger)
    });
    let view = ledger.view();
    let (head, rest) = data.split_at(data.len().min(HEAD_BYTES));
    let (asks, rest) = rest.split_at(rest.len().min(ASKS_BYTES));
    let grains = rest.chunks(GRAIN_BYTES).take(GRAINS_USED_MAX);
    let grains = grains.enumerate().map(|(index, piece)| (CHUNKS_AT + index * GRAIN, piece));
    let pieces: Vec<(usize, &[u8])> = [(0, head), (ASKS_AT, asks)].into_iter().chain(grains).collect();
    for (at, piece) in &pieces {
        let memory = view.at(*at, piece.len()).expect("a ledger is longer");
        // SAFETY: `view.at` checked that the piece lies in the ledger's mapping, and no other code maps the
        // ledger.
        unsafe { memory.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
    }
    view.head().magic.store(LEDGER_MAGIC, Relaxed);
    view.head().version.store(LEDGER_VERSION, Relaxed);
    view.head().grains.fetch_min(GRAINS_CLAIMED_MAX, Relaxed);
    for ask in view.asks() {
        let _ = ledger.module_at(ask.module_at.load(Relaxed));
    }
    let sources = Sources { ledger: &ledger, faults: None, minor_fault_ns: None, clock: None, flames: true };
    let _ = profile(sources, &mut Symbols::default());
    for (at, piece) in &pieces {
        let memory = view.at(*at, piece.len()).expect("as above");
        // SAFETY: `view.at` checked that the piece lies in the ledger's mapping, and no other code maps the
        // ledger.
        unsafe { memory.write_bytes(0, piece.len()) };
    }
    LEDGER.set(Some((place, ledger)));
}
