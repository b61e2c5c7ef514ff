//! Several threads mark a block that lies where a large object was freed: what the collector still knows of
//! that object must not take the marks of the block's first objects.

use vellum_gc as gc;

/// Objects that one object leads to.
const LED_TO: usize = 4000;

#[test]
fn what_lies_where_a_large_object_was_freed_stays() {
    gc::init(gc::Config { markers: 2, paranoid: true, ..gc::Config::DEFAULT }).expect("the heap starts");
    for _ in 0..50 {
        // Nothing is collected until all of it is there: freed objects are remembered until then.
        gc::hold(true);
        let large: Vec<_> = (0..20).map(|_| gc::alloc_atomic(gc::BLOCK)).collect();
        for object in large {
            // SAFETY: allocated above, and used by nobody.
            unsafe { gc::free(object) }.expect("a live object");
        }
        // Blocks for these are taken where the large objects were.
        let table = gc::alloc(LED_TO * 8).cast::<usize>();
        for index in 0..LED_TO {
            let object = gc::alloc(64).cast::<usize>();
            // SAFETY: a new object, and a word of the table.
            unsafe {
                object.write(index);
                table.add(index).write(object.expose_provenance());
            }
        }
        gc::hold(false);
        assert!(gc::collect());
        for index in 0..LED_TO {
            // SAFETY: the table keeps its objects.
            let found = unsafe { std::ptr::with_exposed_provenance::<usize>(table.add(index).read()).read() };
            assert_eq!(found, index);
        }
    }
}
