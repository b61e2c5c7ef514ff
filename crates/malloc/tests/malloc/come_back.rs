//! Tests that blocks freed by another thread become free memory for the thread that allocated them.

use vellum_malloc as front;
use vellum_pages::Pages;
use vellum_wire::Counter;

#[test]
fn blocks_freed_by_others_come_back() {
    vellum_skip::alone(|| {
        for round in 0..20 {
            let blocks: Vec<usize> =
                (0..20_000).map(|index| front::malloc(16 + index * 7 % 200) as usize).collect();
            std::thread::spawn(move || {
                // SAFETY: each block is in use and freed once.
                blocks.iter().for_each(|&block| unsafe { front::free(block as *mut u8) });
            })
            .join()
            .expect("the freeing thread ends");
            assert_eq!(front::validate(), Ok(()));
            // A round takes about 2.5 MB.
            let live = Pages::global().slot().get(Counter::NowLive);
            assert!(live < 6 << 20, "{live} bytes in use after round {round}");
        }
        front::trim();
        let held =
            Pages::global().slot().get(Counter::NowLive) + Pages::global().slot().get(Counter::NowCached);
        assert!(held < 2 << 20, "{held} bytes held after a trim");
    });
}
