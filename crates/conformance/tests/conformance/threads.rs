//! Tests of threads that start, end, sleep, and free each other's blocks, and tests of calls' stack usage.

vellum_conformance::scenarios! { threads: "threads.c", ["-pthread"], [];
    threads_come_and_go blocks_outlive_their_threads blocks_are_freed_by_others destructors_allocate_and_free
    a_crowd_of_threads the_process_ends_while_others_allocate vellum_idle_threads_return_small_blocks
    vellum_idle_threads_return_middling_blocks vellum_idle_threads_return_large_blocks
    vellum_idle_threads_return_huge_blocks vellum_idle_owners_return_what_others_free vellum_a_burst_goes_back
}

vellum_conformance::scenarios! { stacks: "stacks.c", ["-Wl,-z,now"], [];
    allocations memory_given_back figures mappings calls_by_number forks
}
