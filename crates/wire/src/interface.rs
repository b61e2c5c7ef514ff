//! The structures of the collector's C interface, shared by the Rust crates: the runtime, which receives and
//! fills them, and `libgc`, which calls the runtime.
//!
//! `include/vellum_gc.h` declares them for C and documents each field; a test compares the two, field by
//! field. A structure grows at its end only: the runtime accepts shorter ones from programs compiled for an
//! earlier version.

#![allow(missing_docs, reason = "the header documents the fields")]

use core::ffi::{c_int, c_uint};

/// Declares a structure with its number of fields, its size, and the names and types of the header's fields.
/// Also declares the macro `$same`, which asserts that another type has the same layout. `$d` is a dollar
/// sign.
macro_rules! c_struct {
    ($d:tt, $same:ident, $(#[$meta:meta])* $name:ident: $count:literal fields, $bytes:literal bytes,
        $($field:ident $(as $c_name:ident)?: $type:ident,)*) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: $type,)* }

        impl $name {
            /// The fields' names in C and their types, in order.
            pub const FIELDS: &[(&str, &str)] =
                &[$((c_struct!(@name $field $($c_name)?), stringify!($type)),)*];
        }

        const _: () = assert!($name::FIELDS.len() == $count && size_of::<$name>() == $bytes);

        /// Asserts at compile time that a type has the structure's fields at the same places, and no others.
        #[macro_export]
        macro_rules! $same {
            ($d other:ty) => {
                const _: () = {
                    type Own = $crate::interface::$name;
                    assert!(size_of::<$d other>() == size_of::<Own>());
                    $(assert!(core::mem::offset_of!($d other, $field) == core::mem::offset_of!(Own, $field));)*
                };
            };
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $c_name:ident) => { stringify!($c_name) };
}

c_struct!($, same_as_config,
    /// `struct vel_gc_config`.
    Config: 26 fields, 144 bytes,
    config_bytes: usize,
    plan: c_int,
    only_starts: c_int,
    limit_bytes: usize,
    fixed_bytes: usize,
    percent: c_uint,
    poison: c_int,
    slice_us: c_uint,
    safepoints: c_int,
    tells_writes: c_int,
    max_bytes: usize,
    paranoid: c_int,
    eager: c_uint,
    idle_thread: c_int,
    markers: c_uint,
    sizing: c_int,
    ratio: c_uint,
    mem_limit: usize,
    min_new_size: usize,
    min_old_incr: usize,
    c_thousandths: c_uint,
    after_major: c_int,
    precise_stacks: c_int,
    divisor: c_uint,
    seed: u64,
    sticky_marks: c_int,
);

c_struct!($, same_as_stats,
    /// `struct vel_gc_stats`.
    Stats: 30 fields, 240 bytes,
    collections: u64,
    heap_bytes: u64,
    heap_peak_bytes: u64,
    live_bytes: u64,
    allocated_bytes: u64,
    metadata_bytes: u64,
    pause_ns_last: u64,
    pause_ns_longest: u64,
    pause_ns_total: u64,
    root_ns_total: u64,
    mark_ns_total: u64,
    sweep_ns_total: u64,
    marked_objects_last: u64,
    overflows: u64,
    copied_bytes: u64,
    pauses: u64,
    slices: u64,
    pause_cpu_ns_longest: u64,
    pause_cpu_ns_total: u64,
    pause_cpu_ns_last: u64,
    partial: u64,
    protected as protected_collections: u64,
    unsliced: u64,
    parallel: u64,
    helped_objects: u64,
    freed_bytes: u64,
    roots_found: u64,
    rooted_blocks: u64,
    promoted_blocks: u64,
    promoted_free_bytes: u64,
);
