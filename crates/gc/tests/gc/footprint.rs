//! Tests that a heap with all its metadata keeps to its maximum size. Child processes fill heaps in several
//! ways, and the test reads their peak of resident memory.
//!
//! A child may take somewhat more than the maximum. The page layer keeps freed pages, which raise the peak
//! by a sixty-fourth at most, or by 2 MiB if that is more. And reading its own statistics costs the child
//! some memory.

use crate::heap::wipe;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicPtr, Ordering};
use vellum_gc as gc;

const MIB: usize = 1 << 20;
/// The page layer's share, and pages that a test harness touches.
const BESIDE: usize = 3 * MIB;

/// What a child does with its heap.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Lists of the smallest objects: the most bitmaps.
    Small,
    /// Arrays of a few hundred KiB that come and go.
    Large,
    /// Objects with finalizers, links and ephemerons each: the largest tables.
    Tables,
    /// A wide array of lists: the deepest mark stack.
    Wide,
    /// Threads that come and go, each with its own record.
    Threads,
    /// As many types as there may be.
    Types,
}

const LOADS: [Load; 6] = [Load::Small, Load::Large, Load::Tables, Load::Wide, Load::Threads, Load::Types];
const MAXIMA: [usize; 2] = [4 * MIB, 24 * MIB];
/// Times a child fills its heap.
const ROUNDS: usize = 2;

fn status(pid: &str, field: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = text.lines().find(|line| line.starts_with(field)).expect("a field");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("KiB") << 10
}

#[test]
fn mark_sweep() {
    keeps_to_the_maximum(gc::Plan::MarkSweep, |case| vellum_skip::again(mark_sweep, case));
}

#[test]
fn copying() {
    keeps_to_the_maximum(gc::Plan::MostlyCopying, |case| vellum_skip::again(copying, case));
}

#[test]
fn appel() {
    keeps_to_the_maximum(gc::Plan::Appel, |case| vellum_skip::again(appel, case));
}

/// Has `again` start a child for each case, or is that child.
fn keeps_to_the_maximum(plan: gc::Plan, again: impl Fn(&str) -> Command) {
    if let Some(case) = vellum_skip::role() {
        return child(plan, &case);
    }
    for (index, load) in LOADS.iter().enumerate() {
        for max in MAXIMA {
            let name = format!("{plan:?}, {load:?}, {} MiB", max / MIB);
            watch(again(&format!("{index} {max}")), &name, max);
        }
    }
}

/// Starts a child, and looks at its peak before it ends.
fn watch(mut child: Command, name: &str, max: usize) {
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child");
    let mut before = None;
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("a line");
        // The harness writes on the same line.
        let Some((_, said)) = line.split_once("footprint: ") else { continue };
        match said.split_once(' ') {
            Some(("before", bytes)) => before = bytes.parse::<usize>().ok(),
            Some(("filled", rounds)) => {
                let peak = status(&child.id().to_string(), "VmHWM");
                let before = before.expect("it says what it had before");
                let taken = peak.saturating_sub(before);
                let bound = max + BESIDE.max(max / 64 + MIB);
                eprintln!("{name}: {:.2} MiB, after {rounds} rounds", taken as f64 / MIB as f64);
                assert!(taken <= bound, "{name}: {taken} bytes, beyond {bound}");
                drop(child.stdin.take());
            }
            _ => {}
        }
    }
    assert!(child.wait().expect("it ends").success(), "{name}");
    assert!(before.is_some(), "{name}: it said nothing");
}

fn say(what: &str, number: usize) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nfootprint: {what} {number}").expect("a pipe");
    out.flush().expect("a pipe");
}

fn child(plan: gc::Plan, case: &str) {
    let numbers: Vec<usize> = case.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [load, max] = numbers[..] else { panic!("{case}") };
    PLACES.iter().for_each(|place| place.store(std::ptr::dangling_mut(), Ordering::Relaxed));
    wipe();
    say("before", status("self", "VmRSS"));
    gc::init(gc::Config { plan, max_bytes: max, ..gc::Config::DEFAULT }).expect("the heap starts");
    let mut rounds = 0;
    for _ in 0..ROUNDS {
        rounds += fill(LOADS[load]);
        wipe();
        assert!(gc::collect());
        gc::finalize();
    }
    let stats = gc::stats();
    assert!(stats.heap_peak_bytes as usize > max / 8, "the heap was used: {stats:?}");
    assert!(stats.collections > ROUNDS as u64, "{stats:?}");
    gc::validate().expect("the heap's invariants hold");
    say("filled", rounds);
    // The parent looks now.
    let _ = std::io::stdin().read_line(&mut String::new());
}

unsafe extern "C" fn nothing(_: *mut std::ffi::c_void, _: *mut std::ffi::c_void) {}

/// Links of a child at most.
const LINKS: usize = 1 << 18;

/// Places for links: the test's own memory, in use before anything is measured.
static PLACES: [AtomicPtr<u8>; LINKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; LINKS];

/// Objects that hold each other.
struct List {
    head: *mut u8,
    count: usize,
}

impl List {
    /// Takes a new object; false if it is null.
    fn push(&mut self, object: *mut u8) -> bool {
        if object.is_null() {
            return false;
        }
        // SAFETY: a new object, of a word at least.
        unsafe { object.cast::<usize>().write(self.head.expose_provenance()) };
        self.head = object;
        self.count += 1;
        true
    }

    fn of_small() -> List {
        let layout = gc::type_of(16, |_| 1).expect("a small type");
        let mut list = List { head: std::ptr::null_mut(), count: 0 };
        while list.push(gc::alloc_typed(layout)) {}
        list
    }
}

/// Allocates until there is no more; how often.
#[inline(never)]
fn fill(load: Load) -> usize {
    let mut list = List { head: std::ptr::null_mut(), count: 0 };
    match load {
        Load::Small => list = List::of_small(),
        // Every other one dies at once.
        Load::Large => {
            while !gc::alloc(300_000).is_null() && list.push(gc::alloc(100_000 + list.count % 7 * 30_000)) {}
        }
        Load::Tables => {
            for place in &PLACES {
                let object = gc::alloc(32);
                // SAFETY: `nothing` may be called at any time; the places are static.
                let is_made = !object.is_null()
                    && unsafe {
                        gc::set_finalizer(object, Some(nothing), std::ptr::null_mut(), true).is_ok()
                            && gc::link(place.as_ptr(), object, false).is_ok()
                            && gc::set_ephemeron(object, object).is_ok()
                    };
                if !is_made {
                    break;
                }
                list.push(object);
            }
        }
        Load::Wide => return wide(),
        Load::Threads => {
            return std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| List::of_small().count)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no thread fails")).sum()
            });
        }
        Load::Types => {
            let types = (1..=512).map_while(|words| gc::type_of(words * 8, |word| (words + word) as u64 | 1));
            let _ = types.into_iter().all(|layout| (0..20).all(|_| list.push(gc::alloc_typed(layout))));
            list.count += List::of_small().count;
        }
    }
    std::hint::black_box(list.head);
    list.count
}

/// An array of short lists, as wide as there is room for.
fn wide() -> usize {
    let mut width = 8 * MIB;
    let array = loop {
        let array = gc::alloc(width * 8).cast::<*mut u8>();
        if !array.is_null() {
            break array;
        }
        width /= 2;
        if width == 0 {
            // An old address on the stack holds the array of the round before.
            return 0;
        }
    };
    for index in 0..width {
        let (left, right) = (gc::alloc(16), gc::alloc(16));
        if left.is_null() || right.is_null() {
            width = index;
            break;
        }
        // SAFETY: within the array, and new objects.
        unsafe {
            left.cast::<*mut u8>().write(right);
            array.add(index).write(left);
        }
    }
    // So that next to nothing is held if an old address on the stack holds the array.
    // SAFETY: the array has `width` words at least, and nothing else uses it.
    unsafe { array.write_bytes(0, width) };
    width
}
