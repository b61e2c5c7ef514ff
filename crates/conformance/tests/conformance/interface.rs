//! Tests of the malloc family and C++ `new` and `delete` against the standards, and of Vellum's functions.

use vellum_conformance::program::header;
use vellum_conformance::{Place, check_all, compiled, plain};

vellum_conformance::scenarios! { the_malloc_family: "interface.c", ["-ldl"], [];
    too_large_is_refused overflow_is_refused nothing_is_something every_block_is_aligned_and_whole
    calloc_clears_dirty_memory realloc_keeps_contents_up_and_down realloc_from_every_size_to_every_size
    realloc_grows_in_steps realloc_of_aligned_blocks every_alignment bad_alignments whole_pages
    errno_survives_free success_leaves_errno_alone mallinfo2_counts_what_is_held tuning_is_accepted
    trim_gives_memory_back the_c_library_allocates_from_it gigabytes vellum_sized_frees_exist
}

#[test]
fn new_and_delete() {
    let program = compiled("newdelete.cc", &["-std=c++17", "-pthread"]);
    for environment in [&[][..], &[("VELLUM_HARDEN", "1")]] {
        check_all(&program, environment);
    }
}

/// The header is valid C and C++, and the library exports its functions.
#[test]
fn own_interface_works_in_c_and_cpp() {
    let place = Place::new();
    let include = format!("-I{}", header().display());
    check_all(&compiled("vel.c", &[&include, "-ldl"]), &[]);
    let all = place.file("all.cc");
    std::fs::write(&all, "#include <vellum.h>\nint main() { return 0; }\n").expect("a source file");
    let mut command = std::process::Command::new("c++");
    command.args(["-std=c++98", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", &include]).arg(&all);
    plain(command).succeeded();
}
