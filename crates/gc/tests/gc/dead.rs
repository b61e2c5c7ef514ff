//! Tests of dead objects: finalizers, kept and freed objects, limits, deep lists, and a full mark stack. The
//! random program tests links (`program::tables`).

use crate::heap::{begin, wipe};
use crate::words::{at, free, read, write};
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

/// Runs `make` deep in the stack, and clears that part of the stack.
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
    RAN.with_borrow_mut(|ran| ran.push((read(object.cast()), data.addr())));
}

fn ran() -> Vec<(usize, usize)> {
    RAN.with_borrow_mut(std::mem::take)
}

fn numbered(number: usize) -> *mut u8 {
    let object = gc::alloc(32);
    write(object.cast(), number);
    object
}

fn point(from: *mut u8, to: *mut u8) {
    write(from.cast::<usize>().wrapping_add(1), to.expose_provenance());
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
    let words = object.cast::<usize>();
    assert_eq!((read(words), read(at(read(words.wrapping_add(1))))), (77, 78));
    free(object);
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
                free(object);
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

/// A list of a million cells and an array of as many pointers, beyond any recursion and the mark stack.
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
        let object = gc::alloc(16).cast::<usize>();
        write(object, index);
        write(array.wrapping_add(index), object.expose_provenance());
    }
    collect();
    let (mut cell, mut count) = (list.cast::<usize>(), 0);
    while !cell.is_null() {
        count += 1;
        assert_eq!(read(cell), CELLS - count);
        cell = at(read(cell.wrapping_add(1)));
    }
    assert_eq!(count, CELLS);
    for index in 0..WIDTH {
        assert_eq!(read(at(read(array.wrapping_add(index)))), index);
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
        write(table.cast::<usize>().wrapping_add(cells), cell.expose_provenance());
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

/// Keys of a chain, and chains: an old address on the stack may hold some.
const LINKS: usize = 20;
const CHAINS: usize = 100;
const CHAINS_MOST: usize = CHAINS * 9 / 10;

/// A chain: the value of each key is the next one, and refers to the first. Only the first is returned,
/// hidden.
#[inline(never)]
fn chain(number: usize) -> usize {
    let first = gc::alloc(32).cast::<usize>();
    write(first, number);
    let mut key = first;
    for link in 1..LINKS {
        let value = gc::alloc(32).cast::<usize>();
        write(value, number * LINKS + link);
        write(value.wrapping_add(1), first.expose_provenance());
        gc::set_ephemeron(key.cast(), value.cast()).expect("a live object");
        key = value;
    }
    !first.expose_provenance()
}

#[test]
fn values_live_with_their_keys() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { poison: true, ..gc::Config::DEFAULT }).expect("the heap starts");
        let hidden: Vec<usize> = (0..CHAINS).map(chain).collect();
        let mut held = vec![0usize; CHAINS].into_boxed_slice();
        for index in (0..CHAINS).step_by(2) {
            held[index] = !hidden[index];
        }
        let range = held.as_ptr_range();
        // SAFETY: the box outlives this test's collections.
        unsafe { gc::add_roots(range.start.cast(), range.end.cast()) }.expect("room for a range");
        for _ in 0..3 {
            wipe();
            assert!(gc::collect());
        }
        let mut gone = 0;
        for (index, hidden) in hidden.iter().enumerate() {
            let mut key = std::ptr::with_exposed_provenance_mut::<u8>(!hidden);
            if index % 2 == 1 {
                gone += usize::from(gc::ephemeron(key).is_null());
                continue;
            }
            for link in 1..LINKS {
                key = gc::ephemeron(key);
                assert!(!key.is_null(), "link {link} of chain {index}");
                assert_eq!(read(key.cast()), index * LINKS + link);
            }
            assert!(gc::ephemeron(key).is_null());
        }
        assert!(gone * 2 > CHAINS_MOST, "{gone} of {} keys are gone, and their values with them", CHAINS / 2);
        let first = std::ptr::with_exposed_provenance_mut::<u8>(!hidden[0]);
        gc::set_ephemeron(first, std::ptr::null_mut()).expect("a live object");
        assert!(gc::ephemeron(first).is_null());
        assert_eq!(gc::set_ephemeron(first.wrapping_add(8), first), Err(gc::Refused::NoObject));
        gc::remove_roots(range.start.cast(), range.end.cast());
        roots_go_with_their_thread();
    });
}

/// What only a range of a thread holds lives as long as that does.
fn roots_go_with_their_thread() {
    const OBJECTS: usize = 100;
    let places: &'static mut [usize; OBJECTS] = Box::leak(Box::new([0; OBJECTS]));
    let hidden = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let range = places.as_ptr_range();
            // SAFETY: the places are never freed.
            unsafe { gc::add_thread_roots(range.start.cast(), range.end.cast()) }.expect("room for a range");
            for place in places.iter_mut() {
                let object = gc::alloc_atomic(48);
                write(place, object.expose_provenance());
            }
            wipe();
            assert!(gc::collect());
            let hidden: Vec<usize> = places.iter().map(|place| !place).collect();
            let alive = hidden.iter().filter(|hidden| size(**hidden) > 0).count();
            assert_eq!(alive, OBJECTS, "the thread's range holds them");
            hidden
        });
        thread.join().expect("the thread ends")
    });
    wipe();
    assert!(gc::collect());
    let left = hidden.iter().filter(|hidden| size(**hidden) > 0).count();
    assert!(left < OBJECTS / 10, "{left} of {OBJECTS} are left without their thread");
}

fn size(hidden: usize) -> usize {
    gc::size(std::ptr::with_exposed_provenance(!hidden))
}
