//! Rows of `vellum doctor`: ways to observe which pages a program uses (see `vellum watch --sources`).

use super::row::{Row, Section, State};
use vellum_reference::{Availability, SourceKind, has_soft_dirty};

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = SourceKind::ALL.into_iter().map(source).collect();
    rows.push(short_windows());
    rows
}

fn source(kind: SourceKind) -> Row {
    let row = Row::works(Section::Watching, kind.name(), kind.words());
    match (kind.availability(), kind) {
        (Availability::Usable, _) => row,
        (Availability::Absent(why), SourceKind::AccessedBits) => {
            row.absent(State::Missing, "no working set is measured, unless another source works", &why)
        }
        (Availability::Absent(why), _) => row.absent(State::FallsBack, SourceKind::AccessedBits.name(), &why),
    }
}

/// The row for short windows: exact only if the processors' caches of cleared pages can be flushed.
fn short_windows() -> Row {
    let row = Row::works(Section::Watching, "short-windows", "windows below 0.4 s are exact");
    let instead = "they may come out too small, by up to some 3,000 pages";
    match has_soft_dirty() {
        Ok(false) => row,
        Ok(true) => row.falls_back(
            instead,
            "this kernel has soft-dirty bits, which a flush would clear",
            "a kernel without CONFIG_MEM_SOFT_DIRTY; longer windows (watch --delta 1s)",
        ),
        Err(error) => row.falls_back(
            instead,
            format!("/proc/self/pagemap: {error}"),
            "a kernel with CONFIG_PROC_PAGE_MONITOR, and /proc mounted whole",
        ),
    }
}
