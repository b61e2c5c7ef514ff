//! Tests that programs work unchanged with few page frames for all memory, small blocks included.

// Blocks, mappings, structures passed to the kernel, children: with the fewest frames, and with more.
vellum_conformance::scenarios! { fewest: "frames.c", ["-pthread"], [("VELLUM_FRAMES", "512K")];
    small threads mappings calls signals forks
}
vellum_conformance::scenarios! { some: "frames.c", ["-pthread"], [("VELLUM_FRAMES", "4M")];
    small threads mappings calls signals forks
}
