//! Every interleaving of the program's and the pager's steps on a discardable page, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p vellum-pager --test loom --release`.
#![cfg(loom)]

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Mutex};
use loom::thread;

#[path = "../src/marks.rs"]
#[allow(dead_code, unreachable_pub)]
mod marks;
use marks::Marks;

/// A page and its page-table entry: an access to the page holds the lock as the processor's walk of the table
/// does.
struct Page {
    /// What the program wrote, if the page is mapped.
    mapped: Option<u32>,
    /// What the pager keeps of it, if it has taken it away and not dropped it.
    kept: Option<u32>,
}

const NEW: u32 = 7;

/// The program takes a discardable page into use again while the pager looks for pages to drop. A write after
/// the mark was cleared is never lost.
#[test]
fn what_is_written_after_the_mark_is_cleared_stays() {
    loom::model(|| {
        let words = Arc::new([AtomicU64::new(0)]);
        let page = Arc::new(Mutex::new(Page { mapped: Some(1), kept: None }));
        Marks::new(&words[..]).set(3, 4);

        let program = {
            let (words, page) = (words.clone(), page.clone());
            thread::spawn(move || {
                Marks::new(&words[..]).clear(3, 4);
                let mut page = page.lock().unwrap();
                // A fault, if the page is away: the pager gives what it kept, or anything.
                let from = page.kept.take().or(page.mapped);
                assert!(page.mapped.is_none() || page.kept.is_none());
                let _ = from;
                page.mapped = Some(NEW);
            })
        };
        let pager = {
            let (words, page) = (words.clone(), page.clone());
            thread::spawn(move || {
                // 1. taken away
                {
                    let mut page = page.lock().unwrap();
                    page.kept = page.mapped.take();
                }
                // 2. looked at
                let drop_it = Marks::new(&words[..]).has(3);
                if drop_it {
                    // The pager holds its own lock from 1 to here, so that a fault waits for it; what came
                    // between is a page in use again, which the fault has taken out of `kept`.
                    page.lock().unwrap().kept = None;
                }
            })
        };
        program.join().unwrap();
        pager.join().unwrap();
        let page = page.lock().unwrap();
        assert_eq!(page.mapped.or(page.kept), Some(NEW));
    });
}
