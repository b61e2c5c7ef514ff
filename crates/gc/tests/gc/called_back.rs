//! A procedure for roots that allocates would wait for its own collection: the process ends, and says why.

use std::os::unix::process::ExitStatusExt;
use vellum_gc as gc;

unsafe extern "C" fn allocates(_visitor: *const gc::Visitor) {
    // Beyond what the thread still has in hand.
    (0..10_000).for_each(|_| _ = std::hint::black_box(gc::alloc(64)));
}

#[test]
fn a_procedure_for_roots_that_allocates_ends_the_process_with_a_word() {
    if vellum_skip::role().is_some() {
        gc::init(gc::Config::DEFAULT).expect("the heap starts");
        gc::on_roots(Some(allocates));
        gc::collect();
        return;
    }
    let mut child =
        vellum_skip::again(a_procedure_for_roots_that_allocates_ends_the_process_with_a_word, "allocates");
    let child = child.output().expect("a child");
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("a mark procedure, finalizer or signal handler"), "{said}");
}
