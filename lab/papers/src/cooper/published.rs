//! The published figures of Cooper et al. 1992: Figures 13 to 24 of the appendix (plotted there as Figures 2
//! to 4, 6 to 8 and 10 to 12).
//!
//! `published.txt` has them figure by figure. Each line is a column of a published figure: one mode of the
//! pager. Figures 1, 5 and 9 (live size over allocation) were published as plots only (see `live`).

use std::sync::LazyLock;

/// The modes, in the order of the columns.
pub(super) const COLUMNS: [&str; 4] = ["NP", "PO", "PP", "PU"];

/// The memory that was free for the heap, in Kb: "approximately 11 Mb".
pub(super) const MEMORY_KB: f64 = 11.0 * 1024.0;

/// The parameters that the search of the paper found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parameters {
    Original { mem_limit_kb: u32, ratio: u32 },
    Modified { mem_lim_kb: u32, min_new_size_kb: u32, min_old_incr_kb: u32 },
}

/// A figure's data for one mode.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) parameters: Parameters,
    /// User, system and clock time.
    pub(super) times_s: Vec<f64>,
    /// Counts of pages, in the order of the file's comment.
    pub(super) pages: Vec<u32>,
}

/// One figure of the appendix.
#[derive(Debug, Clone)]
pub(super) struct Appendix {
    pub(super) figure: u32,
    pub(super) client: &'static str,
    pub(super) copy_back: bool,
    /// By the modes of [`COLUMNS`].
    pub(super) columns: Vec<Column>,
}

impl Appendix {
    pub(super) fn is_original(&self) -> bool {
        matches!(self.columns[0].parameters, Parameters::Original { .. })
    }

    /// The clock time under a mode.
    pub(super) fn clock_s(&self, column: usize) -> f64 {
        self.columns[column].times_s[2]
    }
}

/// The appendix's figure of a client under a strategy.
pub(super) fn appendix(client: &str, is_original: bool, copy_back: bool) -> &'static Appendix {
    let is = |one: &&Appendix| {
        one.client == client && one.is_original() == is_original && one.copy_back == copy_back
    };
    APPENDIX.iter().find(is).expect("each client has a figure of each combination")
}

/// All figures.
static APPENDIX: LazyLock<Vec<Appendix>> = LazyLock::new(|| {
    let lines = include_str!("published.txt").lines().filter(|line| !line.starts_with('#'));
    let mut figures: Vec<Appendix> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [figure, client, copy_back, strategy, parameters, times, pages] = words[..] else {
            panic!("published.txt: {line}")
        };
        let [figure, ..] = numbers(figure)[..] else { panic!("published.txt: {line}") };
        let parameters = match (strategy, &numbers(parameters)[..]) {
            ("original", &[mem_limit_kb, ratio]) => Parameters::Original { mem_limit_kb, ratio },
            (_, &[mem_lim_kb, min_new_size_kb, min_old_incr_kb]) => {
                Parameters::Modified { mem_lim_kb, min_new_size_kb, min_old_incr_kb }
            }
            _ => panic!("published.txt: {line}"),
        };
        if figures.last().is_none_or(|last| last.figure != figure) {
            figures.push(Appendix { figure, client, copy_back: copy_back == "on", columns: Vec::new() });
        }
        let column = Column { parameters, times_s: numbers(times), pages: numbers(pages) };
        figures.last_mut().expect("a figure was pushed").columns.push(column);
    }
    figures
});

fn numbers<T: std::str::FromStr>(words: &str) -> Vec<T> {
    words.split(',').filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_was_published_once() {
        for client in ["compiler", "sort", "primes"] {
            for original in [true, false] {
                for copy_back in [true, false] {
                    assert_eq!(appendix(client, original, copy_back).client, client);
                }
            }
        }
        let mut figures: Vec<u32> = APPENDIX.iter().map(|one| one.figure).collect();
        figures.sort_unstable();
        assert_eq!(figures, (13..=24).collect::<Vec<_>>());
        for column in APPENDIX.iter().flat_map(|one| &one.columns) {
            assert_eq!((column.times_s.len(), column.pages.len()), (3, 9), "{column:?}");
        }
        assert!(APPENDIX.iter().all(|one| one.columns.len() == COLUMNS.len()));
    }

    #[test]
    fn the_tables_agree_with_the_papers_text() {
        let clock =
            |client, original, copy_back, mode: usize| appendix(client, original, copy_back).clock_s(mode);
        // "The overall improvement is almost a factor of four."
        let compiler = clock("compiler", true, true, 0) / clock("compiler", false, false, 3);
        let sort = clock("sort", true, true, 0) / clock("sort", false, false, 2);
        assert!((3.7..4.0).contains(&compiler) && (3.7..4.0).contains(&sort), "{compiler} {sort}");
        // "for the new allocation scheme, the pager actually performs worse than without the pager"
        assert!(clock("sort", false, false, 1) > clock("sort", false, false, 0));
    }
}
