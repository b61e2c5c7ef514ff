//! Tests of finalizers, of handles and roots on several threads, and of refused operations: allocating beyond
//! the limit, using the heap in a blocking region, setting a field that is not part of the given object.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use vellum_heap::{Array, Field, Gc, Heap, Held, Order, Root, Scope, Weak, object};

object! {
    #[derive(Default)]
    struct Pair {
        head: Field<Pair>,
        tail: Field<Pair>,
        bytes: Field<Array<u8>>,
    }
}

/// Tests here change settings of the process's heap, so only one runs at a time.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn pair<'s>(scope: &Scope<'s>) -> Gc<'s, Pair> {
    scope.alloc(Pair::default()).expect("memory")
}

fn said(panic: Result<(), Box<dyn std::any::Any + Send>>) -> String {
    let panic = panic.expect_err("it panics");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()))
        .unwrap_or_default()
}

#[test]
fn allocation_beyond_the_limit_returns_an_error() {
    let _one = alone();
    let heap = Heap::get();
    heap.collect();
    heap.set_max(Some(heap.stats().heap_bytes as usize + (8 << 20)));
    let error = heap.scope(|scope| {
        let mut list = None;
        loop {
            let next = match scope.alloc_slice(&[7u8; 3000]) {
                Ok(bytes) => {
                    let next = scope.alloc(Pair::default())?;
                    scope.set(next, &next.bytes, bytes);
                    next
                }
                Err(error) => return Err::<(), _>(error),
            };
            scope.set(next, &next.tail, list);
            list = Some(next);
        }
    });
    assert!(error.is_err_and(|error| error.to_string().contains("raise its limit")));
    assert!(heap.scope(|scope| scope.alloc_array(usize::MAX, |_| 0u8).is_err()));
    assert!(heap.scope(|scope| scope.alloc_array(1 << 40, |_| Field::<Pair>::null()).is_err()));
    heap.set_max(None);
    assert!(heap.scope(|scope| pair(scope).head.is_null()));
}

#[test]
fn set_rejects_fields_of_other_objects() {
    let _one = alone();
    let heap = Heap::get();
    heap.scope(|scope| {
        let (one, other) = (pair(scope), pair(scope));
        let wrong = catch_unwind(AssertUnwindSafe(|| scope.set(one, &other.head, one)));
        assert!(said(wrong).contains("a part of the object"));
        let array = scope.alloc_array(3, |_| Field::<Pair>::null()).expect("memory");
        scope.set(array, &array.items()[2], one);
        let wrong = catch_unwind(AssertUnwindSafe(|| scope.set(array, &one.head, one)));
        assert!(said(wrong).contains("a part of the object"));
        assert!(array.items()[2].is(one) && !array.items()[2].is(other) && array.items()[1].is_null());
    });
}

#[test]
fn blocking_regions_cannot_use_the_heap() {
    let _one = alone();
    let heap = Heap::get();
    let tries: [fn(); 5] = [
        || Heap::get().scope(|_| ()),
        || assert!(Heap::get().stats().pauses > 0),
        || assert!(Heap::get().collect()),
        || Heap::get().blocking(|| ()),
        || drop::<Held>(Heap::get().hold()),
    ];
    for attempt in tries {
        let result = catch_unwind(AssertUnwindSafe(|| heap.blocking(attempt)));
        assert!(said(result).contains("blocking region"));
        // The thread has left the region and can continue.
        assert!(heap.scope(|scope| pair(scope).head.is_null()));
    }
    // Roots and weak references may be dropped in a blocking region.
    let (root, weak) = heap.scope(|scope| {
        let object = pair(scope);
        (Root::new(object).expect("memory"), Weak::new(object).expect("memory"))
    });
    heap.blocking(move || drop((root, weak)));
    let weak = heap.scope(|scope| Weak::new(pair(scope)).expect("memory"));
    drop(weak);
    heap.validate().expect("the heap's invariants hold");
}

#[test]
fn finalizers_can_be_replaced_and_removed() {
    let _one = alone();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Noted;
    impl Drop for Noted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    const MADE: usize = 200;
    let heap = Heap::get();
    heap.scope(|scope| {
        for number in 0..MADE {
            let object = pair(scope);
            for add in [1000, 1] {
                let noted = Noted;
                let finalizer = move |_: &Scope<'_>, _: Gc<'_, Pair>| {
                    drop(noted);
                    RAN.fetch_add(add, Ordering::Relaxed);
                };
                // The type requires a closure that works with every scope.
                object.on_death(scope, Order::Ordered, finalizer).expect("memory");
            }
            if number % 2 == 0 {
                assert!(object.forget_death(scope));
                assert!(!object.forget_death(scope));
            }
        }
    });
    assert_eq!(DROPPED.load(Ordering::Relaxed), MADE + MADE / 2, "those replaced, and those taken away");
    wipe();
    heap.collect();
    heap.finalize();
    let ran = RAN.load(Ordering::Relaxed);
    assert!(ran <= MADE / 2 && ran > MADE / 2 * 9 / 10, "{ran} of {} ran", MADE / 2);
}

#[inline(never)]
fn wipe() {
    std::hint::black_box([0usize; 16_384]);
}

#[test]
fn handles_cross_threads_and_roots_outlive_scopes() {
    let _one = alone();
    let heap = Heap::get();
    heap.scope(|scope| {
        let first = pair(scope);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    heap.scope(|own| {
                        for _ in 0..1000 {
                            let new = pair(own);
                            lead(own, first, new);
                            assert!(first.head.get(own).is_some());
                        }
                    });
                });
            }
        });
        assert!(first.head.get(scope).is_some());
    });
    // A thousand handles, and a thousand nested scopes.
    fn deep(heap: Heap, depth: usize) -> usize {
        heap.scope(|scope| {
            let objects: Vec<_> = (0..100).map(|_| pair(scope)).collect();
            let below = if depth == 0 { 0 } else { deep(heap, depth - 1) };
            below + objects.iter().filter(|object| object.head.is_null()).count()
        })
    }
    assert_eq!(deep(heap, 100), 10_100);
    let roots: Vec<Root<Pair>> =
        (0..2000).map(|_| heap.scope(|scope| Root::new(pair(scope)).expect("memory"))).collect();
    heap.collect();
    assert!(heap.scope(|scope| roots.iter().all(|root| root.get(scope).tail.is_null())));
    drop(std::thread::spawn(move || roots).join().expect("no thread fails"));
    heap.validate().expect("the heap's invariants hold");
}

fn lead<'s>(scope: &Scope<'s>, object: Gc<'_, Pair>, target: Gc<'s, Pair>) {
    scope.set(object, &object.head, target);
}
