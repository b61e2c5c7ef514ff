//! Tests of sparsely used memory. Slabs with few blocks in use return their other pages to the kernel. Pages
//! that a program never touches stay unpopulated, even if their block is freed and allocated repeatedly.

use vellum_conformance::{Outcome, compiled, served, with_args};
use vellum_wire::Counter;

vellum_conformance::scenarios! { scenarios: "sparse.c", ["-pthread"], [];
    vellum_pages_among_survivors_go_back vellum_pages_of_sleeping_threads_go_back
    vellum_a_trim_gives_back_pages_among_survivors vellum_mallinfo_tells_survivors_from_the_rest
    vellum_locked_pages_go_once_they_are_not_locked survivors_keep_their_contents
}

vellum_conformance::scenarios! { untouched: "untouched.c", ["-pthread"], [];
    large_blocks large_zeroed_blocks mappings aligned_blocks grown_blocks many_blocks vellum_many_zeroed_blocks
    many_mappings blocks_of_a_few_pages vellum_lengths_that_change vellum_memory_that_is_only_read
    beside_dense_blocks threads locked_memory_is_had_again
}

/// After a process has ended, the board has its memory in blocks.
#[test]
fn board_counts_blocks_and_slabs_of_an_ended_process() {
    let command = with_args(compiled("sparse.c", &["-pthread"]), &["survive"]);
    blocks_are_told_from_slabs(&served(command).succeeded());
}

/// The same holds for killed and running processes, as the helper has counted it.
#[test]
fn board_counts_blocks_and_slabs_of_a_live_process() {
    let mut command = with_args(compiled("sparse.c", &["-pthread"]), &["survive-killed"]);
    command.args([Counter::NowInUse, Counter::NowReturned].map(|counter| (counter as usize).to_string()));
    let run = served(command);
    assert_eq!(run.stderr, "", "{run}");
    blocks_are_told_from_slabs(&run);
}

fn blocks_are_told_from_slabs(run: &Outcome) {
    let live: u64 = run.text().trim().parse().expect("the program says what is live");
    let get = |counter| run.seats[0].get(counter);
    let in_use = get(Counter::NowInUse);
    assert!(in_use.abs_diff(live) * 20 <= live, "{in_use} of {live}: {run}");
    let returned = get(Counter::NowReturned);
    assert!(returned > live, "most of the slabs has gone back: {returned}");
    assert!(get(Counter::NowLive) > in_use + returned / 2, "extents count whole: {}", get(Counter::NowLive));
}
