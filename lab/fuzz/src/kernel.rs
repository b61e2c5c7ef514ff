//! Fuzz targets for the kernel's data: texts of `/proc` and of cgroups, types (BTF), and rings of perf
//! events. A container's file system may serve such texts in the kernel's place.

use crate::split;
use vellum_kernel::readers as kernel;
use vellum_reference::readers as reference;
use vellum_sys::readers as sys;

pub(crate) const PROC_WORDS: &[&str] = &[
    "Rss:  4 kB\n",
    "Referenced:  4 kB\n",
    "Shared_Clean: 4 kB\n",
    "Swap: 18446744073709551615 kB\n",
    "VmRSS: 9007199254740992 kB\n",
    "VmSwap: 36028797018963968 kB\n",
    "VmFlags: lo\n",
    "memcg 1 /\n node 0\n",
    " 1 2 3 4\n",
    "18446744073709551615",
    "9223372036854775807",
    "7f00-7f10 rw-p 00000000 00:00 0 [heap]\n",
    "ffffffffffffffff",
    "r-xp",
    " (a b) S ",
    " - cgroup2 ",
    "0-2147483647",
    "anon_thp ",
    "model name:",
];
pub(crate) const GROUP_WORDS: &[&str] = &[
    "0::/",
    ":memory:/",
    " - cgroup2 cgroup2 rw\n",
    " - cgroup cgroup rw,memory\n",
    "inactive_file ",
    "active_file ",
    "total_inactive_file ",
    "high ",
    "max ",
    "oom ",
    "MemAvailable: ",
    "VmSwap:",
    "18446744073709551615",
    "/../",
];
/// The byte at which `cgroups` splits its input into the membership and a mount table.
const CUT: u8 = 0xff;

/// Every text about processes, mappings and the machine.
pub fn procfs(data: &[u8]) {
    kernel::texts(data);
    reference::texts(data);
}

/// The texts of cgroups and limits, as the library reads them in every process.
pub fn cgroups(data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == CUT).unwrap_or(data.len());
    let _ = sys::groups(&data[..cut], data.get(cut + 1..).unwrap_or_default());
    let _ = sys::group_texts(data);
    let _ = sys::swapped(data);
}

/// The types of a kernel.
pub fn btf(data: &[u8]) {
    let _ = reference::btf(data);
}

/// A ring of events.
pub fn perf_ring(data: &[u8]) {
    let (number, ring) = split::number(data);
    let _ = vellum_cost::readers::ring_of_faults(ring, number);
}
