//! A Rust program that uses Vellum as its global allocator: four threads build, take apart and sum up trees.
//!
//! ```text
//! cargo run --release -p vellum-malloc --example global
//! cargo run --release -p vellum-malloc --example global --target x86_64-unknown-linux-musl
//! ```

use std::collections::BTreeMap;

#[global_allocator]
static ALLOCATOR: vellum_malloc::Vellum = vellum_malloc::Vellum;

fn main() {
    let work = |thread: u64| {
        let mut all = BTreeMap::new();
        for i in 0..100_000u64 {
            all.insert(i * 7919 % 1_000_003, vec![thread as u8; (i % 300) as usize]);
            if i % 3 == 0 {
                all.remove(&(i * 31 % 1_000_003));
            }
        }
        all.values().map(Vec::len).sum::<usize>()
    };
    let threads: Vec<_> = (0..4).map(|thread| std::thread::spawn(move || work(thread))).collect();
    let bytes: usize = threads.into_iter().map(|thread| thread.join().expect("it ends")).sum();
    let large = vec![1u8; 64 << 20];
    println!(
        "{bytes} bytes in trees, {} ones in a row",
        large.iter().map(|&one| usize::from(one)).sum::<usize>()
    );
}
