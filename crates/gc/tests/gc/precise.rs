//! A test of precise stacks: objects that a registered frame refers to stay alive and may move; other
//! words of a stack keep nothing alive.

use crate::words::{at, read, write};
use vellum_gc as gc;

const THREADS: usize = 3;
const ROUNDS: usize = 200;
const NODES: usize = 300;

/// Objects of four words, of which the second is a pointer.
fn node() -> &'static gc::Layout {
    gc::type_of(32, |_| 0b10).expect("a small type")
}

/// A list of `NODES` numbers from `first` on, made with its head in a frame; then it is checked, and dropped.
fn lists(thread: usize) -> usize {
    let layout = node();
    let mut moved = 0;
    let mut roots = [0usize; 2];
    let frame = gc::Frame::new();
    // SAFETY: the frame and its words are unlinked before they go.
    unsafe { frame.push(roots.as_mut_ptr(), roots.len()) };
    let mine = roots.as_mut_ptr();
    for round in 0..ROUNDS {
        let first = thread * ROUNDS + round;
        let mut seen = 0;
        for number in 0..NODES {
            let new = gc::alloc_typed(layout).expose_provenance();
            write(at(new), first + number);
            write(at(new).wrapping_add(1), read(mine));
            write(mine, new);
            if number == NODES / 2 {
                seen = new;
                write(mine.wrapping_add(1), new);
                (0..2000).for_each(|_| _ = std::hint::black_box(gc::alloc_typed(layout)));
            }
            gc::safepoint();
        }
        let (mut node, middle) = (read(mine), read(mine.wrapping_add(1)));
        moved += usize::from(middle != seen);
        for number in (0..NODES).rev() {
            assert_eq!(read(at(node)), first + number, "thread {thread} round {round}");
            assert!(number != NODES / 2 || node == middle, "two ways to one object");
            node = read(at(node).wrapping_add(1));
        }
        assert_eq!(node, 0);
        write(mine, 0);
        write(mine.wrapping_add(1), 0);
    }
    // SAFETY: linked above.
    unsafe { frame.pop() };
    moved
}

#[test]
fn frames_hold_what_lives_and_nothing_else_does() {
    vellum_skip::alone(|| {
        let config = gc::Config {
            plan: gc::Plan::Appel,
            precise_stacks: true,
            tells_writes: true,
            paranoid: true,
            poison: true,
            ..gc::Config::DEFAULT
        };
        gc::init(config).expect("the heap starts");
        let threads: Vec<_> = (0..THREADS).map(|thread| std::thread::spawn(move || lists(thread))).collect();
        let moved: usize =
            gc::blocking(|| threads.into_iter().map(|thread| thread.join().expect("no thread fails")).sum());
        assert!(moved > 10, "only {moved} objects moved");

        // Addresses on the stack hold nothing.
        let layout = node();
        let mut links: [_; 16] = std::array::from_fn(|_| gc::alloc_typed(layout));
        for link in &mut links {
            // SAFETY: the link lives as long as the test.
            unsafe { gc::link(link, *link, false) }.expect("a live object");
        }
        // What the collector's own functions have returned last is an exception.
        std::hint::black_box(gc::alloc_typed(layout));
        assert!(gc::collect());
        let living = links
            .each_mut()
            .into_iter()
            .filter(|link| read((&raw const **link).cast_mut().cast()) != 0)
            .count();
        // A word of static data may be the address of a block, which is also that of its first object.
        assert!(living <= 1, "{living} objects live, although only the stack says so: {links:?}");

        // What a function was given stays where it is, and what it returns.
        let mut text = gc::alloc_atomic(8);
        for bytes in (16..4000).step_by(50) {
            // SAFETY: nobody else has the object; it is written whole.
            unsafe {
                text.write_bytes(7, 8);
                text = gc::realloc(text, bytes);
                assert!(!text.is_null() && (0..8).all(|at| text.add(at).read() == 7), "{bytes} bytes");
            }
        }
        gc::validate().expect("the heap's invariants hold");
    });
}
