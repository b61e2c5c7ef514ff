//! What becomes of the dead: finalizers, kept and freed objects, limits, deep lists, a full mark stack. Links
//! are checked by the random program.

use crate::heap::{begin, wipe};
use std::cell::RefCell;
use std::ffi::c_void;
use vellum_gc as gc;

on_every_heap! {
    finalizers_run_once_and_in_order
    kept_objects_stay_until_freed
    large_objects_come_and_go
    resizing_keeps_contents
    deep_and_wide
    the_limit_holds_and_running_out_is_a_value
    held_off_nothing_dies
}

/// An address that the collector does not see.
#[derive(Clone, Copy)]
struct Hidden(usize);

impl Hidden {
    fn new(pointer: *mut u8) -> Hidden {
        Hidden(!pointer.expose_provenance())
    }
    fn get(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(!self.0)
    }
}

/// Runs `make` deep in the stack and clears what it leaves there.
#[inline(never)]
fn apart<R>(make: impl FnOnce() -> R) -> R {
    #[inline(never)]
    fn deep<R>(depth: usize, make: impl FnOnce() -> R) -> R {
        let padding = std::hint::black_box([0usize; 512]);
        if depth == 0 {
            return make();
        }
        let result = deep_boxed(depth - 1, Box::new(make));
        std::hint::black_box(padding);
        result
    }
    #[inline(never)]
    fn deep_boxed<R>(depth: usize, make: Box<dyn FnOnce() -> R + '_>) -> R {
        if depth == 0 { deep(0, make) } else { deep_boxed(depth - 1, make) }
    }
    let result = deep(8, make);
    wipe();
    result
}

fn collect() {
    wipe();
    assert!(gc::collect());
}

thread_local! {
    static RAN: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn note(object: *mut c_void, data: *mut c_void) {
    // SAFETY: the object is kept until this returns.
    let number = unsafe { object.cast::<usize>().read() };
    RAN.with_borrow_mut(|ran| ran.push((number, data.addr())));
}

fn ran() -> Vec<(usize, usize)> {
    RAN.with_borrow_mut(std::mem::take)
}

fn numbered(number: usize) -> *mut u8 {
    let object = gc::alloc(32);
    // SAFETY: a new object of four words.
    unsafe { object.cast::<usize>().write(number) };
    object
}

fn point(from: *mut u8, to: *mut u8) {
    // SAFETY: an object of four words.
    unsafe { from.cast::<usize>().add(1).write(to.expose_provenance()) };
}

fn finalize(object: *mut u8, data: usize, unordered: bool) {
    let data = std::ptr::without_provenance_mut(data);
    // SAFETY: `note` may be called at any time on this thread, and others of this file do not collect now.
    unsafe { gc::set_finalizer(object, Some(note), data, unordered) }.expect("a live object");
}

/// Things made of each sort, of which an old address on the stack may hold some.
const MADE: usize = 100;
const MOST: usize = MADE * 9 / 10;

fn finalizers_run_once_and_in_order(plan: gc::Plan) {
    begin(plan);
    gc::finalize_on_demand(true);
    apart(|| {
        for chain in 0..MADE {
            // The first refers to the second, that to the third: they may go one at a time, from the first.
            let objects = [1, 2, 3].map(|place| numbered(chain * 10 + place));
            point(objects[0], objects[1]);
            point(objects[1], objects[2]);
            objects.into_iter().for_each(|object| finalize(object, 5, false));
        }
    });
    let mut order = Vec::new();
    for round in 0..6 {
        collect();
        gc::finalize();
        let ran = ran();
        assert!(ran.iter().all(|&(number, data)| number % 10 <= round + 1 && data == 5), "{round}: {ran:?}");
        order.extend(ran.into_iter().map(|(number, _)| number));
    }
    let whole = (0..MADE).filter(|chain| {
        let of: Vec<_> =
            order.iter().filter(|&&number| number / 10 == *chain).map(|number| number % 10).collect();
        assert!([1, 2, 3].starts_with(&of), "chain {chain} went {of:?}");
        of.len() == 3
    });
    let whole = whole.count();
    assert!(whole > MOST, "{whole} of {MADE} chains went whole");

    apart(|| {
        for pair in 0..MADE {
            let objects = [1, 2].map(|place| numbered(pair * 10 + place));
            point(objects[0], objects[1]);
            point(objects[1], objects[0]);
            objects.into_iter().for_each(|object| finalize(object, 6, true));
        }
    });
    collect();
    collect();
    gc::finalize();
    let mut ran: Vec<_> = ran().into_iter().filter(|&(_, data)| data == 6).collect();
    let count = ran.len();
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), count, "none ran twice");
    assert!(count > 2 * MOST, "{count} of {MADE} cycles of two, unordered");
    gc::finalize_on_demand(false);
}

fn kept_objects_stay_until_freed(plan: gc::Plan) {
    begin(plan);
    let hidden = apart(|| {
        let object = numbered(77);
        point(object, numbered(78));
        gc::keep(object).expect("a live object");
        Hidden::new(object)
    });
    for _ in 0..3 {
        collect();
    }
    let object = hidden.get();
    // SAFETY: the object is kept, and so is what it points to.
    let (number, inner) = unsafe {
        let words = object.cast::<[usize; 2]>().read();
        (words[0], std::ptr::with_exposed_provenance::<usize>(words[1]).read())
    };
    assert_eq!((number, inner), (77, 78));
    // SAFETY: nobody uses it any more.
    unsafe { gc::free(object) }.expect("a live object");
    collect();
    assert!(gc::base(object).is_null());
    // SAFETY: refused, so nothing happens.
    assert_eq!(unsafe { gc::free(object) }, Err(gc::Refused::NoObject));
}

fn large_objects_come_and_go(plan: gc::Plan) {
    begin(plan);
    let before = gc::stats().heap_bytes;
    for round in 0..50usize {
        apart(|| {
            let object = gc::alloc((1 << 20) + round * 5000);
            assert!(!object.is_null());
            // SAFETY: within the object.
            unsafe {
                assert_eq!(object.add(1 << 19).read(), 0);
                object.write_bytes(0xff, 1 << 20);
            }
            let inside = object.wrapping_add(700_000);
            assert_eq!(gc::base(inside), object);
            if round % 2 == 0 {
                // SAFETY: nobody uses it any more.
                unsafe { gc::free(object) }.expect("a live object");
            }
        });
    }
    collect();
    collect();
    assert!(gc::stats().heap_bytes < before + (8 << 20), "{:?}", gc::stats());
    gc::validate().expect("the heap's invariants hold");
}

fn resizing_keeps_contents(plan: gc::Plan) {
    begin(plan);
    let mut object = gc::alloc(8).cast::<usize>();
    let mut words = 1;
    // SAFETY: each object has as many words as are written and read.
    unsafe {
        object.write(1);
        for size in [2usize, 10, 64, 100, 2000, 40_000, 300, 5] {
            object = gc::realloc(object.cast(), size * 8).cast();
            for index in 0..words.min(size) {
                assert_eq!(object.add(index).read(), index + 1, "word {index} at {size} words");
            }
            for index in words..size {
                assert_eq!(object.add(index).read(), 0, "word {index} of {size} is new");
            }
            (0..size).for_each(|index| object.add(index).write(index + 1));
            words = size;
        }
    }
}

/// A list of a million cells and an array of as many pointers: neither recursion nor the mark stack's end may
/// matter.
fn deep_and_wide(plan: gc::Plan) {
    begin(plan);
    const CELLS: usize = 1_000_000;
    const WIDTH: usize = 1_500_000;
    let mut list = std::ptr::null_mut::<u8>();
    for number in 0..CELLS {
        let cell = numbered(number);
        point(cell, list);
        list = cell;
    }
    let array = gc::alloc(WIDTH * 8).cast::<usize>();
    for index in 0..WIDTH {
        // SAFETY: within the array; the object is new.
        unsafe {
            let object = gc::alloc(16).cast::<usize>();
            object.write(index);
            array.add(index).write(object.expose_provenance());
        }
    }
    collect();
    let (mut at, mut count) = (list, 0);
    while !at.is_null() {
        // SAFETY: the list holds its cells.
        let words = unsafe { at.cast::<[usize; 2]>().read() };
        count += 1;
        assert_eq!(words[0], CELLS - count);
        at = std::ptr::with_exposed_provenance_mut(words[1]);
    }
    assert_eq!(count, CELLS);
    for index in 0..WIDTH {
        // SAFETY: the array holds its objects.
        let found = unsafe { std::ptr::with_exposed_provenance::<usize>(array.add(index).read()).read() };
        assert_eq!(found, index);
    }
    gc::validate().expect("the heap's invariants hold");
}

fn the_limit_holds_and_running_out_is_a_value(plan: gc::Plan) {
    begin(plan);
    collect();
    let limit = gc::stats().heap_bytes as usize + (4 << 20);
    gc::set_limit(limit);
    fill_to(limit);
    wipe();
    assert!(!gc::alloc(1 << 20).is_null(), "what died makes room");
    gc::set_limit(usize::MAX);
}

/// Fills the heap with what a table holds until it is at its limit. The table is empty when this returns: an
/// old address of it on the stack holds nothing else.
#[inline(never)]
fn fill_to(limit: usize) {
    const CELLS: usize = 10_000;
    let table = gc::alloc(CELLS * 8).cast::<*mut u8>();
    let mut cells = 0;
    loop {
        let cell = gc::alloc(1000);
        if cell.is_null() {
            break;
        }
        // SAFETY: within the table.
        unsafe { table.add(cells).write_volatile(cell) };
        cells += 1;
        assert!(cells < CELLS, "the limit is not noticed");
    }
    assert!(cells > 2000, "{cells} cells of 1000 bytes fit 4 MiB");
    assert!(gc::stats().heap_bytes as usize <= limit);
    assert!(gc::alloc(8 << 20).is_null());
    // SAFETY: the table has `CELLS` words.
    unsafe { table.write_bytes(0, CELLS) };
}

fn held_off_nothing_dies(plan: gc::Plan) {
    begin(plan);
    gc::hold(true);
    assert!(!gc::collect());
    let before = gc::stats().collections;
    for _ in 0..200_000 {
        std::hint::black_box(gc::alloc(32));
    }
    assert_eq!(gc::stats().collections, before);
    gc::hold(false);
    assert!(gc::collect());
}
