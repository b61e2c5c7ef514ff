//! The published figures of Cooper et al. 1992: Figures 13 to 24 of the appendix, from which Figures 2 to 4,
//! 6 to 8 and 10 to 12 are drawn.
//!
//! They are transcribed figure by figure. A column (here a line) is a mode of the pager, in the paper's
//! order: NP, PO, PP (called PF in its section 5), PU. Figures 1, 5 and 9 (live size over allocation) were
//! published as plots only; `live` has the statements of the text.

/// The modes, in the order of the columns.
pub(super) const COLUMNS: [&str; 4] = ["NP", "PO", "PP", "PU"];

/// The memory that was free for the heap, in Kb: "approximately 11 Mb".
pub(super) const MEMORY_KB: f64 = 11.0 * 1024.0;

/// The rows of an appendix table that count pages.
pub(super) const PAGES: [&str; 9] = [
    "read faults zero-filled",
    "read faults not read",
    "read faults read",
    "write faults zero-filled",
    "write faults not read",
    "write faults read",
    "page-out discarded",
    "page-out written",
    "pages flushed",
];

/// Counts by the rows of [`PAGES`].
type Pages = [u32; PAGES.len()];

/// The parameters that the search of the paper found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parameters {
    Original { mem_limit_kb: u32, ratio: u32 },
    Modified { mem_lim_kb: u32, min_new_size_kb: u32, min_old_incr_kb: u32 },
}

/// A figure's data for one mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) parameters: Parameters,
    /// User, system and clock time.
    pub(super) times_s: [f64; 3],
    pub(super) pages: Pages,
}

/// By the modes of [`COLUMNS`].
type Columns = [Column; COLUMNS.len()];

/// One figure of the appendix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appendix {
    pub(super) figure: u32,
    pub(super) client: &'static str,
    pub(super) copy_back: bool,
    pub(super) columns: Columns,
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

const fn original(mem_limit_kb: u32, ratio: u32, times_s: [f64; 3], pages: Pages) -> Column {
    Column { parameters: Parameters::Original { mem_limit_kb, ratio }, times_s, pages }
}

const fn modified(
    mem_lim_kb: u32,
    min_new_size_kb: u32,
    min_old_incr_kb: u32,
    times_s: [f64; 3],
    pages: Pages,
) -> Column {
    let parameters = Parameters::Modified { mem_lim_kb, min_new_size_kb, min_old_incr_kb };
    Column { parameters, times_s, pages }
}

/// The appendix's figure of a client under a strategy.
pub(super) fn appendix(client: &str, is_original: bool, copy_back: bool) -> Option<&'static Appendix> {
    let is = |one: &&Appendix| {
        one.client == client && one.is_original() == is_original && one.copy_back == copy_back
    };
    APPENDIX.iter().find(is)
}

/// All figures.
pub(super) const APPENDIX: [Appendix; 12] = [
    Appendix { figure: 13, client: "compiler", copy_back: true, columns: FIGURE_13 },
    Appendix { figure: 14, client: "sort", copy_back: true, columns: FIGURE_14 },
    Appendix { figure: 15, client: "primes", copy_back: true, columns: FIGURE_15 },
    Appendix { figure: 16, client: "compiler", copy_back: false, columns: FIGURE_16 },
    Appendix { figure: 17, client: "sort", copy_back: false, columns: FIGURE_17 },
    Appendix { figure: 18, client: "primes", copy_back: false, columns: FIGURE_18 },
    Appendix { figure: 19, client: "compiler", copy_back: false, columns: FIGURE_19 },
    Appendix { figure: 20, client: "sort", copy_back: false, columns: FIGURE_20 },
    Appendix { figure: 21, client: "primes", copy_back: false, columns: FIGURE_21 },
    Appendix { figure: 22, client: "compiler", copy_back: true, columns: FIGURE_22 },
    Appendix { figure: 23, client: "sort", copy_back: true, columns: FIGURE_23 },
    Appendix { figure: 24, client: "primes", copy_back: true, columns: FIGURE_24 },
];

// A line is a column: its parameters, its user, system and clock time, its pages.

const FIGURE_13: Columns = [
    original(14000, 1000, [300.8, 59.9, 1641.0], [19, 0, 6797, 6069, 0, 18648, 0, 26883, 0]),
    original(9000, 7, [344.4, 50.7, 1176.0], [7, 98, 8075, 6619, 11806, 7936, 14660, 14890, 0]),
    original(9000, 7, [352.1, 69.1, 812.0], [903, 4938, 4798, 4663, 17550, 3487, 428, 8349, 24109]),
    original(16000, 4, [335.3, 82.8, 1021.0], [1037, 7638, 8544, 4866, 24662, 3819, 9449, 13016, 24338]),
];

const FIGURE_14: Columns = [
    original(3000, 4, [194.2, 33.8, 1393.0], [14, 0, 10818, 8429, 0, 11585, 0, 25682, 0]),
    original(7000, 4, [186.1, 44.2, 1115.0], [13, 27, 10736, 8245, 5224, 5901, 5553, 19492, 0]),
    original(6000, 100, [196.4, 46.1, 1009.0], [17, 145, 11798, 9499, 10955, 6511, 99, 21681, 13276]),
    original(11000, 10, [166.8, 52.6, 1068.0], [17, 124, 17424, 10412, 17393, 9037, 5767, 30393, 14296]),
];

const FIGURE_15: Columns = [
    original(12000, 1000, [404.4, 4.6, 413.0], [5, 0, 0, 2995, 0, 0, 0, 0, 0]),
    original(12000, 1000, [398.2, 6.7, 409.0], [6, 0, 0, 2994, 0, 0, 0, 0, 0]),
    original(14000, 100, [397.6, 6.0, 407.0], [868, 0, 0, 2632, 0, 0, 0, 0, 0]),
    original(14000, 1000, [396.6, 9.8, 412.0], [897, 1132, 0, 2603, 1478, 0, 0, 0, 3409]),
];

const FIGURE_16: Columns = [
    original(14000, 1000, [284.0, 85.1, 3575.0], [32, 0, 11942, 11020, 0, 39083, 0, 57329, 0]),
    original(9000, 7, [297.1, 94.3, 1235.0], [27, 265, 9397, 10155, 36532, 4303, 41668, 14633, 0]),
    original(9000, 7, [310.0, 84.1, 529.0], [19, 360, 1163, 10152, 41923, 949, 958, 2124, 47715]),
    original(16000, 4, [293.2, 81.0, 800.0], [1950, 9605, 15009, 8486, 34454, 4483, 11172, 20046, 38144]),
];

const FIGURE_17: Columns = [
    original(3000, 4, [158.2, 45.4, 1423.0], [59, 0, 7232, 11947, 0, 10620, 0, 25843, 0]),
    original(7000, 4, [159.9, 63.5, 963.0], [42, 318, 9494, 13032, 12920, 1208, 17443, 15579, 0]),
    original(8000, 100, [138.5, 38.5, 435.0], [44, 236, 3279, 11625, 11284, 413, 165, 6955, 15879]),
    original(11000, 10, [146.8, 54.4, 637.0], [1365, 3906, 4560, 9195, 11366, 2249, 2700, 10168, 15968]),
];

const FIGURE_18: Columns = [
    original(12000, 1000, [404.4, 4.6, 413.0], [5, 0, 0, 2995, 0, 0, 0, 0, 0]),
    original(12000, 1000, [403.0, 30.2, 602.0], [9, 0, 45, 4459, 0, 2940, 0, 3501, 0]),
    original(12000, 1000, [398.2, 6.7, 409.0], [6, 0, 0, 2994, 0, 0, 0, 0, 0]),
    original(12000, 1000, [405.0, 26.7, 491.0], [7, 5, 42, 4461, 2922, 16, 2951, 574, 0]),
];

const FIGURE_19: Columns = [
    modified(3500, 2500, 3000, [297.8, 39.5, 1262.0], [29, 0, 5349, 6925, 0, 16562, 0, 25110, 0]),
    modified(3000, 500, 3500, [302.4, 52.8, 603.0], [47, 274, 3047, 7910, 19292, 2252, 23196, 5644, 0]),
    modified(10000, 1000, 5500, [259.0, 55.4, 433.0], [36, 330, 540, 8141, 28783, 765, 537, 1435, 32884]),
    modified(0, 500, 5000, [280.5, 54.3, 431.0], [40, 444, 585, 8201, 29340, 887, 155, 1682, 34798]),
];

const FIGURE_20: Columns = [
    modified(0, 6000, 10000, [126.5, 34.1, 595.0], [242, 0, 4944, 10783, 0, 3113, 0, 15135, 0]),
    modified(9000, 5000, 5000, [129.2, 46.0, 647.0], [150, 111, 6678, 10697, 9358, 610, 12419, 11246, 0]),
    modified(6000, 7000, 7000, [110.4, 31.0, 369.0], [2428, 1797, 4162, 5630, 5340, 2641, 428, 9509, 8416]),
    modified(9000, 5000, 5000, [132.4, 42.2, 539.0], [132, 94, 5136, 10715, 9285, 520, 2917, 8529, 10522]),
];

const FIGURE_21: Columns = [
    modified(0, 4000, 4000, [397.2, 5.8, 404.0], [26, 0, 0, 3182, 0, 0, 0, 0, 0]),
    modified(2500, 4500, 500, [399.1, 6.2, 408.0], [13, 0, 0, 2703, 0, 0, 0, 0, 0]),
    modified(0, 5000, 1000, [398.7, 6.7, 409.0], [515, 0, 0, 2417, 0, 0, 0, 0, 0]),
    modified(8500, 4500, 4000, [394.1, 14.2, 415.0], [1529, 738, 0, 4708, 3121, 0, 0, 0, 7178]),
];

const FIGURE_22: Columns = [
    modified(3500, 2500, 3000, [347.7, 35.4, 1011.0], [15, 0, 3736, 4759, 0, 7670, 0, 12372, 0]),
    modified(3000, 500, 3500, [336.5, 26.9, 686.0], [20, 17, 2294, 4790, 2002, 3183, 2941, 5505, 0]),
    modified(10000, 1000, 5500, [287.7, 71.6, 671.0], [35, 221, 1038, 6212, 37656, 3189, 459, 4537, 39712]),
    modified(0, 500, 5000, [312.8, 78.1, 624.0], [15, 189, 591, 4788, 31406, 2488, 0, 3079, 33506]),
];

const FIGURE_23: Columns = [
    modified(0, 5500, 10500, [111.7, 31.6, 1231.0], [39, 0, 8364, 7695, 0, 9632, 0, 21181, 0]),
    modified(9000, 5500, 5500, [146.0, 62.4, 1970.0], [36, 80, 18564, 7480, 12006, 11583, 12086, 31678, 0]),
    modified(6000, 7500, 6500, [128.7, 41.9, 795.0], [1442, 2314, 7653, 6607, 6201, 3502, 245, 13317, 10386]),
    modified(9000, 5000, 5000, [161.8, 54.9, 1306.0], [42, 129, 12482, 6752, 11950, 7548, 3848, 21936, 9208]),
];

const FIGURE_24: Columns = [
    modified(0, 4000, 4000, [405.5, 5.3, 415.0], [31, 0, 0, 2175, 0, 0, 0, 0, 0]),
    modified(2500, 4500, 500, [401.3, 4.5, 408.0], [20, 0, 0, 1529, 0, 0, 0, 0, 0]),
    modified(0, 5000, 1000, [406.6, 6.6, 419.0], [440, 0, 0, 1458, 0, 0, 0, 0, 0]),
    modified(8500, 4500, 4000, [398.7, 10.8, 418.0], [592, 1199, 0, 2718, 1738, 0, 0, 0, 3328]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_was_published_once() {
        for client in ["compiler", "sort", "primes"] {
            for original in [true, false] {
                for copy_back in [true, false] {
                    assert!(
                        appendix(client, original, copy_back).is_some(),
                        "{client} {original} {copy_back}"
                    );
                }
            }
        }
        let mut figures: Vec<u32> = APPENDIX.iter().map(|one| one.figure).collect();
        figures.sort_unstable();
        assert_eq!(figures, (13..=24).collect::<Vec<_>>());
    }

    #[test]
    fn the_tables_agree_with_the_papers_text() {
        let clock = |client, original, copy_back, mode: usize| {
            appendix(client, original, copy_back).map_or(0.0, |one| one.clock_s(mode))
        };
        // "The overall improvement is almost a factor of four."
        let compiler = clock("compiler", true, true, 0) / clock("compiler", false, false, 3);
        let sort = clock("sort", true, true, 0) / clock("sort", false, false, 2);
        assert!((3.7..4.0).contains(&compiler) && (3.7..4.0).contains(&sort), "{compiler} {sort}");
        // "for the new allocation scheme, the pager actually performs worse than without the pager"
        assert!(clock("sort", false, false, 1) > clock("sort", false, false, 0));
    }
}
