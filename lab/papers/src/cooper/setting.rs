//! The settings varied in Cooper et al. 1992: heap sizing, the pager's mode, and the use of vacated
//! regions (emptied by copying).
//!
//! | here | in the paper | how it is set |
//! | --- | --- | --- |
//! | [`Sizing`] | the strategies of sections 2 and 3 | `VELLUM_GC_SIZING` |
//! | [`Mode`] | the pager's modes of section 5, the interface of section 6 | `VELLUM_DISCARD` |
//! | [`After`] | copy-back on and off, and the proposals of section 6 | the client's argument `after=` |
//!
//! Parameters are fractions of the memory: the paper's parameters, which are for 11 MB, then fit any memory.

use super::published::{COLUMNS, MEMORY_KB, Parameters, appendix};

/// The policy that sizes the heap. Sizes are fractions of the memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sizing {
    Original { mem_limit: f64, ratio: u32 },
    Modified { mem_lim: f64, min_new_size: f64, min_old_incr: f64 },
    SquareRoot { c: u32 },
    Knee,
}

/// The treatment of pages whose contents need not be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// NP: nothing.
    None,
    /// PO: they are marked as discardable.
    Marks,
    /// PP: marked, and flushed when memory is short.
    Pager,
    /// PU: marked, and flushed after major collections.
    User,
    /// Section 6: flushed, and never marked.
    FlushOnly,
    /// The library's default.
    Default,
}

/// The use of the region that a major collection has vacated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    CopyBack,
    Drift,
    Reuse,
    /// Only sparse blocks are copied, and vacated ones are reused at once.
    Stay,
    /// Nothing is vacated: plans without regions.
    InPlace,
}

/// The four modes of the paper's columns.
pub(super) const MODES: [Mode; COLUMNS.len()] = [Mode::None, Mode::Marks, Mode::Pager, Mode::User];

/// A strategy of the paper, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Original,
    Modified,
}

impl Strategy {
    pub(super) const BOTH: [Self; 2] = [Self::Original, Self::Modified];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Modified => "modified",
        }
    }

    /// The paper's usual treatment of a vacated region.
    pub(super) const fn usually(self) -> After {
        match self {
            Self::Original => After::CopyBack,
            Self::Modified => After::Drift,
        }
    }

    /// The parameters that the paper found for a client under a mode. Modes that the paper does not have get
    /// those of PU.
    pub(super) fn published(self, client: &str, mode: Mode) -> Sizing {
        let column = MODES.iter().position(|one| *one == mode).unwrap_or(MODES.len() - 1);
        let found = appendix(client, self == Self::Original, self.usually() == After::CopyBack);
        let part = |kb: u32| f64::from(kb) / MEMORY_KB;
        match found.columns[column].parameters {
            Parameters::Original { mem_limit_kb, ratio } => {
                Sizing::Original { mem_limit: part(mem_limit_kb), ratio }
            }
            Parameters::Modified { mem_lim_kb, min_new_size_kb, min_old_incr_kb } => Sizing::Modified {
                mem_lim: part(mem_lim_kb),
                min_new_size: part(min_new_size_kb),
                min_old_incr: part(min_old_incr_kb),
            },
        }
    }
}

impl Sizing {
    /// The value of `VELLUM_GC_SIZING`, for `memory` bytes.
    pub(super) fn word(self, memory: u64) -> String {
        let kib = |part: f64| (part * memory as f64 / 1024.0).round() as u64;
        match self {
            Self::Original { mem_limit, ratio } => {
                format!("original,mem_limit={}K,ratio={ratio}", kib(mem_limit))
            }
            Self::Modified { mem_lim, min_new_size, min_old_incr } => format!(
                "modified,mem_limit={}K,min_new_size={}K,min_old_incr={}K",
                kib(mem_lim),
                kib(min_new_size),
                kib(min_old_incr)
            ),
            Self::SquareRoot { c } => format!("square_root,c={c}"),
            Self::Knee => "knee".to_owned(),
        }
    }

    /// Text for reports, with fractions of the memory in percent.
    pub(super) fn text(self) -> String {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        match self {
            Self::Original { mem_limit, ratio } => format!("mem_limit {}, ratio {ratio}", percent(mem_limit)),
            Self::Modified { mem_lim, min_new_size, min_old_incr } => format!(
                "mem_lim {}, min_new_size {}, min_old_incr {}",
                percent(mem_lim),
                percent(min_new_size),
                percent(min_old_incr)
            ),
            Self::SquareRoot { c } => format!("c {c}"),
            Self::Knee => "nothing to tune".to_owned(),
        }
    }

    /// Its name, without parameters.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Original { .. } => "original",
            Self::Modified { .. } => "modified",
            Self::SquareRoot { .. } => "square_root",
            Self::Knee => "knee",
        }
    }
}

impl Mode {
    /// The value of `VELLUM_DISCARD`.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Marks => "marks",
            Self::Pager => "pager",
            Self::User => "user",
            Self::FlushOnly => "flush_only",
            Self::Default => "default",
        }
    }

    /// The name in the paper's columns.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => COLUMNS[0],
            Self::Marks => COLUMNS[1],
            Self::Pager => COLUMNS[2],
            Self::User => COLUMNS[3],
            Self::FlushOnly => "flush only",
            Self::Default => "default",
        }
    }
}

impl After {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::CopyBack => "copy_back",
            Self::Drift => "drift",
            Self::Reuse => "reuse",
            Self::Stay => "stay",
            Self::InPlace => "",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::CopyBack => "copy-back",
            Self::Drift => "drift",
            Self::Reuse => "reuse",
            Self::Stay => "stay",
            Self::InPlace => "in place",
        }
    }
}

/// The heap sizing, the pager's mode and the use of vacated regions in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub(super) sizing: Sizing,
    pub(super) mode: Mode,
    pub(super) after: After,
}

impl Setting {
    /// Its name as an arm: without parameters.
    pub(super) fn label(&self) -> String {
        format!("{} {} {}", self.sizing.name(), self.mode.name(), self.after.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_parameters_become_fractions_of_this_memory() {
        let found = Strategy::Modified.published("sort", Mode::None);
        let Sizing::Modified { mem_lim, min_new_size, .. } = found else { panic!("{found:?}") };
        assert_eq!(mem_lim, 0.0);
        assert!((min_new_size - 6000.0 / 11264.0).abs() < 1e-9);
        assert_eq!(found.word(11 << 20), "modified,mem_limit=0K,min_new_size=6000K,min_old_incr=10000K");
        let found = Strategy::Original.published("compiler", Mode::Pager);
        assert_eq!(found.word(22 << 20), "original,mem_limit=18000K,ratio=7");
        assert_eq!(
            Strategy::Original.published("compiler", Mode::FlushOnly),
            Strategy::Original.published("compiler", Mode::User)
        );
    }
}
