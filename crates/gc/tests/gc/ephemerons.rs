//! Ephemerons: values live with their keys, along chains, and go with them; and roots that go with their
//! thread.

use crate::heap::wipe;
use vellum_gc as gc;

/// Keys of a chain, and chains: an old address on the stack may hold some.
const LINKS: usize = 20;
const CHAINS: usize = 100;
const MOST: usize = CHAINS * 9 / 10;

/// A chain: the value of each key is the next one, and refers to the first. Only the first is returned,
/// hidden.
#[inline(never)]
fn chain(number: usize) -> usize {
    let first = gc::alloc(32).cast::<usize>();
    // SAFETY: new objects of four words.
    unsafe {
        first.write(number);
        let mut key = first;
        for link in 1..LINKS {
            let value = gc::alloc(32).cast::<usize>();
            value.write(number * LINKS + link);
            value.add(1).write(first.expose_provenance());
            gc::set_ephemeron(key.cast(), value.cast()).expect("a live object");
            key = value;
        }
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
                // SAFETY: a value that lives.
                assert_eq!(unsafe { key.cast::<usize>().read() }, index * LINKS + link);
            }
            assert!(gc::ephemeron(key).is_null());
        }
        assert!(gone * 2 > MOST, "{gone} of {} keys are gone, and their values with them", CHAINS / 2);
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
                // Volatile: the collector reads what the compiler thinks nobody does.
                // SAFETY: the place is the array's.
                unsafe { std::ptr::from_mut(place).write_volatile(object.expose_provenance()) };
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
