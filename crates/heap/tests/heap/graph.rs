//! A random test of the whole interface by several threads, with a collection at every allocation.
//!
//! Each thread has a graph of objects in the heap, and a model of this graph in plain Rust: nodes with
//! numbers, links, arrays, weak references, roots and ephemerons. Everything that is reachable in the model
//! must be found in the heap.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use vellum_heap::{Array, Config, Field, Gc, Heap, Keyed, Order, Plain, Root, Scope, Weak, object};
use vellum_random::Rng;

const LINKS: usize = 3;
const ROOTS: usize = 12;
const THREADS: u64 = 3;

object! {
    struct Node {
        id: usize,
        twice: AtomicU64,
        links: [Field<Node>; LINKS],
        text: Field<Array<u8>>,
        table: Field<Array<Field<Node>>>,
        wide: Plain<(u8, u16)>,
    }
    struct Note {
        id: usize,
        about: Field<Node>,
    }
}

impl Keyed for Node {
    type Value = Note;
}

/// A node of the model.
#[derive(Clone, Default)]
struct Known {
    links: [Option<usize>; LINKS],
    table: Vec<Option<usize>>,
    text: Vec<u8>,
    /// The node that its note refers to, if it has a note.
    note: Option<Option<usize>>,
    /// True if its finalizer has yet to run.
    has_finalizer: bool,
}

struct Program {
    random: Rng,
    heap: Heap,
    nodes: Vec<Known>,
    roots: Vec<Option<(usize, Root<Node>)>>,
    weak: HashMap<usize, Weak<Node>>,
    died: &'static Mutex<Vec<usize>>,
    dead: usize,
    cleared: usize,
}

impl Program {
    fn new(seed: u64, heap: Heap) -> Program {
        Program {
            random: Rng::new(seed),
            heap,
            nodes: Vec::new(),
            roots: (0..ROOTS).map(|_| None).collect(),
            weak: HashMap::new(),
            died: Box::leak(Box::default()),
            dead: 0,
            cleared: 0,
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    /// A node at the end of a random walk.
    fn reach<'s>(&mut self, scope: &Scope<'s>) -> Option<(usize, Gc<'s, Node>)> {
        let root = self.below(ROOTS);
        let (mut id, mut node) = self.roots[root].as_ref().map(|(id, root)| (*id, root.get(scope)))?;
        for _ in 0..self.below(5) {
            let link = self.below(LINKS);
            let next = node.links[link].get(scope);
            assert_eq!(next.map(|next| next.id), self.nodes[id].links[link]);
            let Some(next) = next else { break };
            (id, node) = (next.id, next);
        }
        assert_eq!((node.id, node.twice.load(Ordering::Relaxed)), (id, id as u64 * 2));
        Some((id, node))
    }

    fn make(&mut self, scope: &Scope<'_>) {
        let id = self.nodes.len();
        let node = node(scope, id);
        let bytes: Vec<u8> = (0..self.below(300)).map(|index| (index ^ id) as u8).collect();
        scope.set(node, &node.text, scope.alloc_slice(&bytes).expect("memory"));
        let places = self.below(40);
        let array = scope.alloc_array(places, |_| Field::null()).expect("memory");
        scope.set(node, &node.table, array);
        let died = self.died;
        let has_finalizer = self.below(4) == 0;
        if has_finalizer {
            let order = if self.below(2) == 0 { Order::Ordered } else { Order::Unordered };
            node.on_death(scope, order, move |scope, node| {
                // All referents of a finalized object still exist.
                assert_eq!(node.twice.load(Ordering::Relaxed), node.id as u64 * 2);
                assert!(node.text.get(scope).is_some_and(|text| text.len() < 300));
                node.links.iter().filter_map(|link| link.get(scope)).for_each(|other| {
                    assert_eq!(other.twice.load(Ordering::Relaxed), other.id as u64 * 2);
                });
                died.lock().expect("no thread fails").push(node.id);
            })
            .expect("memory");
        }
        self.nodes.push(Known { text: bytes, table: vec![None; places], has_finalizer, ..Known::default() });
        if self.below(3) == 0 {
            self.weak.insert(id, Weak::new(node).expect("memory"));
        }
        let root = self.below(ROOTS);
        self.roots[root] = Some((id, Root::new(node).expect("memory")));
    }

    fn change(&mut self, scope: &Scope<'_>) {
        let (Some((from, node)), Some((to, target))) = (self.reach(scope), self.reach(scope)) else { return };
        match self.below(8) {
            0..4 => {
                let link = self.below(LINKS);
                scope.set(node, &node.links[link], target);
                self.nodes[from].links[link] = Some(to);
            }
            4 => {
                let link = self.below(LINKS);
                scope.set(node, &node.links[link], None::<Gc<'_, Node>>);
                self.nodes[from].links[link] = None;
            }
            5..7 => {
                let array = node.table.get(scope).expect("every node has a table");
                if !array.is_empty() {
                    let place = self.below(array.len());
                    scope.set(array, &array.items()[place], target);
                    self.nodes[from].table[place] = Some(to);
                }
            }
            _ => {
                let note = scope.alloc(Note { id: from, about: Field::null() }).expect("memory");
                scope.set(note, &note.about, target);
                node.know(scope, note).expect("memory");
                self.nodes[from].note = Some(Some(to));
            }
        }
    }

    fn reachable(&self) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut waiting: Vec<usize> = self.roots.iter().flatten().map(|(id, _)| *id).collect();
        while let Some(id) = waiting.pop() {
            if found.insert(id) {
                let known = &self.nodes[id];
                waiting.extend(known.links.iter().chain(&known.table).flatten());
                waiting.extend(known.note.flatten());
            }
        }
        found
    }

    /// Checks that all reachable nodes match the model, and that no finalized node was reachable.
    fn check(&mut self) {
        let reachable = self.reachable();
        for id in std::mem::take(&mut *self.died.lock().expect("no thread fails")) {
            assert!(!reachable.contains(&id), "node {id} is finalized and in reach");
            assert!(std::mem::take(&mut self.nodes[id].has_finalizer), "node {id} is finalized twice");
            self.dead += 1;
        }
        let mut seen = HashSet::new();
        for root in 0..ROOTS {
            let Some((_, root)) = &self.roots[root] else { continue };
            self.heap.scope(|scope| {
                let mut waiting = vec![root.get(scope)];
                while let Some(node) = waiting.pop() {
                    if !seen.insert(node.id) {
                        continue;
                    }
                    let known = &self.nodes[node.id];
                    let ids = |fields: &[Field<Node>]| -> Vec<Option<usize>> {
                        fields.iter().map(|field| field.get(scope).map(|node| node.id)).collect()
                    };
                    let table = node.table.get(scope).expect("every node has a table");
                    assert_eq!(ids(&node.links), known.links);
                    assert_eq!(ids(table.items()), known.table);
                    assert_eq!(node.text.get(scope).expect("every node has a text").items(), known.text);
                    let note = node.known(scope);
                    assert_eq!(note.is_some(), known.note.is_some(), "the note of node {}", node.id);
                    let about = note.and_then(|note| {
                        assert_eq!(note.id, node.id);
                        note.about.get(scope)
                    });
                    assert_eq!(about.map(|node| node.id), known.note.flatten());
                    waiting
                        .extend(node.links.iter().chain(table.items()).filter_map(|field| field.get(scope)));
                    waiting.extend(about);
                }
            });
        }
        assert_eq!(seen, reachable);
        let heap = self.heap;
        let before = self.weak.len();
        self.weak.retain(|id, weak| {
            let found = heap.scope(|scope| weak.get(scope).map(|node| node.id));
            assert!(found.is_some() || !reachable.contains(id), "weak reference to {id}");
            assert!(found.is_none_or(|found| found == *id));
            found.is_some()
        });
        self.cleared += before - self.weak.len();
    }

    fn step(&mut self) {
        let heap = self.heap;
        heap.scope(|scope| match self.below(10) {
            0..4 => self.make(scope),
            4..8 => self.change(scope),
            8 => {
                let (from, to) = (self.below(ROOTS), self.below(ROOTS));
                let held = self.roots[from].as_ref().map(|(id, root)| {
                    // One handle of an inner scope is kept.
                    let node = heap.scope(|inner| scope.keep(root.get(inner)));
                    (*id, Root::new(node).expect("memory"))
                });
                self.roots[to] = held.filter(|_| from % 2 == 0);
            }
            _ => {
                heap.collect();
            }
        });
    }
}

fn node<'s>(scope: &Scope<'s>, id: usize) -> Gc<'s, Node> {
    let (links, text, table) = Default::default();
    let twice = AtomicU64::new(id as u64 * 2);
    scope.alloc(Node { id, twice, links, text, table, wide: Plain((1, 2)) }).expect("memory")
}

/// Keeps objects by handles in a `Vec`, which the collector does not scan: the objects must live and stay in
/// place until the scope ends.
fn hold_in_vectors(heap: Heap) {
    const HELD: usize = 300;
    let weak: Vec<Weak<Node>> = heap.scope(|scope| {
        let held: Vec<Gc<'_, Node>> = (0..HELD)
            .map(|id| {
                // The inner scope and its frame are gone at the next allocation; only the outer scope's list
                // keeps the object.
                heap.scope(|inner| {
                    let root = Root::new(inner.alloc(Note { id, about: Field::null() }).expect("memory"));
                    drop(root);
                });
                node(scope, id)
            })
            .collect();
        let places: Vec<usize> = held.iter().map(|node| !node.as_ptr().addr()).collect();
        for id in 0..HELD {
            node(scope, id);
            assert!(id % 50 != 0 || heap.collect());
        }
        for (id, node) in held.iter().enumerate() {
            assert_eq!((node.id, node.twice.load(Ordering::Relaxed)), (id, id as u64 * 2));
            assert_eq!(!node.as_ptr().addr(), places[id], "node {id} stays where it is");
        }
        held.iter().map(|node| Weak::new(*node).expect("memory")).collect()
    });
    std::hint::black_box([0usize; 16_384]);
    heap.collect();
    let left = heap.scope(|scope| weak.iter().filter(|weak| weak.get(scope).is_some()).count());
    assert!(left < HELD / 10, "{left} of {HELD} are left without a scope");
}

on_every_plan! { run: 2000, 1000, 1000 }

/// Runs a program of this many steps on each of several threads, with a heap of `config`.
fn run(config: Config, steps: usize) {
    let steps = steps * vellum_skip::scale();
    let seed = vellum_random::test_seed(Some(0x5eed));
    let heap = Heap::start(config).expect("the heap starts");
    hold_in_vectors(heap);
    static DEAD: AtomicUsize = AtomicUsize::new(0);
    static CLEARED: AtomicUsize = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            threads.spawn(move || {
                let mut program = Program::new(seed ^ thread << 32, heap);
                for step in 0..steps {
                    program.step();
                    if step % 50 == 0 {
                        program.check();
                        heap.blocking(std::thread::yield_now);
                    }
                }
                program.check();
                DEAD.fetch_add(program.dead, Ordering::Relaxed);
                CLEARED.fetch_add(program.cleared, Ordering::Relaxed);
            });
        }
    });
    heap.validate().expect("the heap's invariants hold");
    let (dead, cleared) = (DEAD.load(Ordering::Relaxed), CLEARED.load(Ordering::Relaxed));
    assert!(dead > steps / 20 && cleared > steps / 20, "{dead} died, {cleared} weak references were cleared");
}
