//! Rows of `vellum doctor`: memory features of this kernel, each tested by the calls that Vellum itself uses.

use super::row::{Row, Section, State};
use crate::run::store;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use vellum_kernel::machine::{HUGE_PAGES, MAP_COUNT, setting};
use vellum_measure::Machine;
use vellum_report::units::count;
use vellum_sys::caps::{self, Caps};
use vellum_sys::{attempt, cachestat, environment, host, limits};

/// The directory of the pager's store, unless the environment names another.
const STORE: &str = "/var/tmp";
/// The kernel's default for the limit.
const MAP_COUNT_USUAL: u64 = 65_530;

/// A capability: its use, its fallback, the call, and the first kernel that has it.
struct Tried {
    name: &'static str,
    one: Caps,
    attempt: fn() -> Result<(), Errno>,
    what: &'static str,
    instead: &'static str,
    call: &'static str,
    since: &'static str,
}

const TRIED: [Tried; 8] = [
    Tried {
        name: "uffd-move",
        one: Caps::MOVE,
        attempt: attempt::move_pages,
        what: "free pages move to where they are needed (UFFDIO_MOVE)",
        instead: "page tables move (mremap); new memory is faulted in more often",
        call: "userfaultfd",
        since: "6.8",
    },
    Tried {
        name: "write-tracking",
        one: Caps::TRACK,
        attempt: attempt::write_tracking,
        what: "the kernel notes which pages were written (UFFD write-protect, PAGEMAP_SCAN): short pauses of the collector",
        instead: "pages are protected (mprotect, SIGSEGV), at a higher cost for each first write",
        call: "userfaultfd, /proc/self/pagemap and PAGEMAP_SCAN",
        since: "6.7",
    },
    Tried {
        name: "lazy-free",
        one: Caps::LAZY_FREE,
        attempt: attempt::lazy_free,
        what: "free pages are marked, and taken when memory is short (MADV_FREE)",
        instead: "they go back at once (MADV_DONTNEED)",
        call: "madvise(MADV_FREE)",
        since: "4.5",
    },
    Tried {
        name: "populate",
        one: Caps::POPULATE,
        attempt: attempt::populate,
        what: "new memory is fetched in one call (MADV_POPULATE_WRITE)",
        instead: "it is faulted in page by page",
        call: "madvise(MADV_POPULATE_WRITE)",
        since: "5.14",
    },
    Tried {
        name: "mremap",
        one: Caps::REMAP,
        attempt: attempt::move_tables,
        what: "large blocks move by their page tables",
        instead: "they are copied",
        call: "mremap",
        since: "5.7",
    },
    Tried {
        name: "membarrier",
        one: Caps::MEMBARRIER,
        attempt: attempt::fences,
        what: "free blocks of idle threads are collected",
        instead: "idle threads keep their free blocks",
        call: "membarrier",
        since: "4.14",
    },
    Tried {
        name: "pressure",
        one: Caps::PRESSURE,
        attempt: attempt::pressure,
        what: "the kernel reports when memory gets short (/proc/pressure/memory)",
        instead: "limits are looked at from time to time",
        call: "writing to /proc/pressure/memory",
        since: "5.2, with psi=1",
    },
    Tried {
        name: "huge-pages",
        one: Caps::HUGE_PAGES,
        attempt: attempt::huge_pages,
        what: "dense memory gets huge pages",
        instead: "all memory is in base pages",
        call: "madvise(MADV_HUGEPAGE)",
        since: "2.6.38, with CONFIG_TRANSPARENT_HUGEPAGE",
    },
];

/// The rows. The flags that `VELLUM_MASK` names are dropped first, as in programs.
pub(super) fn rows(machine: &Machine) -> Vec<Row> {
    let mask = environment::variable(c"VELLUM_MASK").and_then(|names| Caps::by_names(names.to_bytes()));
    let mask = mask.unwrap_or(Caps::empty());
    caps::drop(mask);
    let mut rows = vec![paging()];
    rows.extend(TRIED.iter().map(|tried| match tried.one {
        Caps::HUGE_PAGES => with_policy(tried.row(mask), &machine.huge_pages),
        _ => tried.row(mask),
    }));
    rows.extend([address_space(), map_entries(), variables()]);
    rows
}

fn said(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw_os_error())
}

impl Tried {
    fn row(&self, mask: Caps) -> Row {
        let row = Row::works(Section::Memory, self.name, self.what);
        if mask.contains(self.one) {
            return row.falls_back(self.instead, "VELLUM_MASK names it", "unset VELLUM_MASK");
        }
        match (self.attempt)() {
            Ok(()) => row,
            Err(errno) => {
                row.falls_back(self.instead, format!("{}: {}", self.call, said(errno)), since(self.since))
            }
        }
    }
}

/// The remedy for a call that the kernel refuses.
fn since(version: &str) -> String {
    format!(
        "Linux {version} or later; in a container, a seccomp profile that allows it (docker, podman: --security-opt \
         seccomp=FILE)"
    )
}

/// The place of the store, chosen as programs choose it.
fn paging() -> Row {
    let mut named = ["VELLUM_STORE", "TMPDIR"].into_iter().filter_map(std::env::var_os);
    let path = named.find(|path| !path.is_empty()).unwrap_or_else(|| OsString::from(STORE));
    let row = Row::works(
        Section::Memory,
        "store",
        format!("memory can be paged to a file in {} (run --frames)", path.display()),
    );
    let instead = "run --frames pages nothing";
    let absent = || Row { what: "memory is paged to a file (run --frames)".to_owned(), ..row.clone() };
    match store::check(path.as_ref()).map(|file| cachestat::cached(file, 0, 0)) {
        Ok(Ok(_)) => row,
        Ok(Err(errno)) => {
            let instead = "pages in memory are counted by mincore, which takes longer";
            row.clone().falls_back(instead, format!("cachestat: {}", said(errno)), since("6.5"))
        }
        Err(why) => absent().absent(State::Missing, instead, &why),
    }
}

/// Adds the system's policy, which may refuse huge pages even if the call works.
fn with_policy(row: Row, policy: &str) -> Row {
    let instead = "all memory is in base pages";
    match policy {
        "never" => row.falls_back(
            instead,
            format!("{HUGE_PAGES} is never"),
            format!("as root: echo madvise > {HUGE_PAGES}"),
        ),
        policy if host::takes_free_pages() => {
            let row = Row { what: format!("{} (policy: {policy})", row.what), ..row };
            row.falls_back(
                "huge pages are tried, and taken while they are cheap",
                format!("free pages are reported to the host: {}", host::REPORTING.to_string_lossy()),
                "free page reporting off in the balloon of the virtual machine",
            )
        }
        policy => Row { what: format!("{} (policy: {policy})", row.what), ..row },
    }
}

fn address_space() -> Row {
    let row = Row::works(Section::Memory, "address-space", "address space is reserved ahead of need");
    row.unless(
        !limits::address_space_is_accounted(),
        "it is mapped when it is needed: large blocks grow in place less often",
        "RLIMIT_AS or RLIMIT_DATA is set, or vm.overcommit_memory is 2",
        "ulimit -v unlimited; ulimit -d unlimited; sysctl vm.overcommit_memory=0",
    )
}

fn map_entries() -> Row {
    let row = Row::works(Section::Memory, "map-entries", "");
    let Some(most) = setting(MAP_COUNT).and_then(|number| number.parse().ok()) else {
        return row.not_shown(format!("{MAP_COUNT} cannot be read"));
    };
    let row = Row { what: format!("a process may have {} mappings", count(most)), ..row };
    row.unless(
        most >= MAP_COUNT_USUAL,
        "blocks are copied instead of moved where entries run out",
        format!("vm.max_map_count is {most}"),
        format!("sysctl vm.max_map_count={MAP_COUNT_USUAL}"),
    )
}

fn variables() -> Row {
    let row = Row::works(Section::Memory, "variables", "VELLUM_ variables are heeded");
    row.unless(
        !environment::is_secure(),
        "they are ignored, as in every program with more rights than its caller (AT_SECURE)",
        "this command has more rights than its caller",
        "remove its set-user-ID bit and file capabilities",
    )
}
