//! The source's published figures: its appendix, Figures 13 to 24, from which its Figures 2 to 4, 6 to 8 and
//! 10 to 12 are drawn.
//!
//! Transcribed figure by figure. Columns are the pager's modes in the source's order: NP, PO, PP (called PF
//! in its section 5), PU. Figures 1, 5 and 9 (live size over allocation) were published as plots only; the
//! statements of its text are in `live`.

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

/// The parameters that were found, by mode.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parameters {
    Original { mem_limit_kb: [u32; 4], ratio: [u32; 4] },
    Modified { mem_lim_kb: [u32; 4], min_new_size_kb: [u32; 4], min_old_incr_kb: [u32; 4] },
}

/// One figure of the appendix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appendix {
    pub(super) figure: u32,
    pub(super) client: &'static str,
    pub(super) copy_back: bool,
    pub(super) parameters: Parameters,
    pub(super) user_s: [f64; 4],
    pub(super) system_s: [f64; 4],
    pub(super) clock_s: [f64; 4],
    /// By the rows of [`PAGES`].
    pub(super) pages: [[u32; 4]; 9],
}

impl Appendix {
    /// Whether it is of the original strategy.
    pub(super) fn is_original(&self) -> bool {
        matches!(self.parameters, Parameters::Original { .. })
    }
}

/// The figure of a client under a strategy.
pub(super) fn appendix(client: &str, is_original: bool, copy_back: bool) -> Option<&'static Appendix> {
    let is = |one: &&Appendix| {
        one.client == client && one.is_original() == is_original && one.copy_back == copy_back
    };
    APPENDIX.iter().find(is)
}

/// All of them.
pub(super) const APPENDIX: [Appendix; 12] = [
    Appendix {
        figure: 13,
        client: "compiler",
        copy_back: true,
        parameters: Parameters::Original { mem_limit_kb: [14000, 9000, 9000, 16000], ratio: [1000, 7, 7, 4] },
        user_s: [300.8, 344.4, 352.1, 335.3],
        system_s: [59.9, 50.7, 69.1, 82.8],
        clock_s: [1641.0, 1176.0, 812.0, 1021.0],
        pages: [
            [19, 7, 903, 1037],
            [0, 98, 4938, 7638],
            [6797, 8075, 4798, 8544],
            [6069, 6619, 4663, 4866],
            [0, 11806, 17550, 24662],
            [18648, 7936, 3487, 3819],
            [0, 14660, 428, 9449],
            [26883, 14890, 8349, 13016],
            [0, 0, 24109, 24338],
        ],
    },
    Appendix {
        figure: 14,
        client: "sort",
        copy_back: true,
        parameters: Parameters::Original { mem_limit_kb: [3000, 7000, 6000, 11000], ratio: [4, 4, 100, 10] },
        user_s: [194.2, 186.1, 196.4, 166.8],
        system_s: [33.8, 44.2, 46.1, 52.6],
        clock_s: [1393.0, 1115.0, 1009.0, 1068.0],
        pages: [
            [14, 13, 17, 17],
            [0, 27, 145, 124],
            [10818, 10736, 11798, 17424],
            [8429, 8245, 9499, 10412],
            [0, 5224, 10955, 17393],
            [11585, 5901, 6511, 9037],
            [0, 5553, 99, 5767],
            [25682, 19492, 21681, 30393],
            [0, 0, 13276, 14296],
        ],
    },
    Appendix {
        figure: 15,
        client: "primes",
        copy_back: true,
        parameters: Parameters::Original {
            mem_limit_kb: [12000, 12000, 14000, 14000],
            ratio: [1000, 1000, 100, 1000],
        },
        user_s: [404.4, 398.2, 397.6, 396.6],
        system_s: [4.6, 6.7, 6.0, 9.8],
        clock_s: [413.0, 409.0, 407.0, 412.0],
        pages: [
            [5, 6, 868, 897],
            [0, 0, 0, 1132],
            [0, 0, 0, 0],
            [2995, 2994, 2632, 2603],
            [0, 0, 0, 1478],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 3409],
        ],
    },
    Appendix {
        figure: 16,
        client: "compiler",
        copy_back: false,
        parameters: Parameters::Original { mem_limit_kb: [14000, 9000, 9000, 16000], ratio: [1000, 7, 7, 4] },
        user_s: [284.0, 297.1, 310.0, 293.2],
        system_s: [85.1, 94.3, 84.1, 81.0],
        clock_s: [3575.0, 1235.0, 529.0, 800.0],
        pages: [
            [32, 27, 19, 1950],
            [0, 265, 360, 9605],
            [11942, 9397, 1163, 15009],
            [11020, 10155, 10152, 8486],
            [0, 36532, 41923, 34454],
            [39083, 4303, 949, 4483],
            [0, 41668, 958, 11172],
            [57329, 14633, 2124, 20046],
            [0, 0, 47715, 38144],
        ],
    },
    Appendix {
        figure: 17,
        client: "sort",
        copy_back: false,
        parameters: Parameters::Original { mem_limit_kb: [3000, 7000, 8000, 11000], ratio: [4, 4, 100, 10] },
        user_s: [158.2, 159.9, 138.5, 146.8],
        system_s: [45.4, 63.5, 38.5, 54.4],
        clock_s: [1423.0, 963.0, 435.0, 637.0],
        pages: [
            [59, 42, 44, 1365],
            [0, 318, 236, 3906],
            [7232, 9494, 3279, 4560],
            [11947, 13032, 11625, 9195],
            [0, 12920, 11284, 11366],
            [10620, 1208, 413, 2249],
            [0, 17443, 165, 2700],
            [25843, 15579, 6955, 10168],
            [0, 0, 15879, 15968],
        ],
    },
    Appendix {
        figure: 18,
        client: "primes",
        copy_back: false,
        parameters: Parameters::Original {
            mem_limit_kb: [12000, 12000, 12000, 12000],
            ratio: [1000, 1000, 1000, 1000],
        },
        user_s: [404.4, 403.0, 398.2, 405.0],
        system_s: [4.6, 30.2, 6.7, 26.7],
        clock_s: [413.0, 602.0, 409.0, 491.0],
        pages: [
            [5, 9, 6, 7],
            [0, 0, 0, 5],
            [0, 45, 0, 42],
            [2995, 4459, 2994, 4461],
            [0, 0, 0, 2922],
            [0, 2940, 0, 16],
            [0, 0, 0, 2951],
            [0, 3501, 0, 574],
            [0, 0, 0, 0],
        ],
    },
    Appendix {
        figure: 19,
        client: "compiler",
        copy_back: false,
        parameters: Parameters::Modified {
            mem_lim_kb: [3500, 3000, 10000, 0],
            min_new_size_kb: [2500, 500, 1000, 500],
            min_old_incr_kb: [3000, 3500, 5500, 5000],
        },
        user_s: [297.8, 302.4, 259.0, 280.5],
        system_s: [39.5, 52.8, 55.4, 54.3],
        clock_s: [1262.0, 603.0, 433.0, 431.0],
        pages: [
            [29, 47, 36, 40],
            [0, 274, 330, 444],
            [5349, 3047, 540, 585],
            [6925, 7910, 8141, 8201],
            [0, 19292, 28783, 29340],
            [16562, 2252, 765, 887],
            [0, 23196, 537, 155],
            [25110, 5644, 1435, 1682],
            [0, 0, 32884, 34798],
        ],
    },
    Appendix {
        figure: 20,
        client: "sort",
        copy_back: false,
        parameters: Parameters::Modified {
            mem_lim_kb: [0, 9000, 6000, 9000],
            min_new_size_kb: [6000, 5000, 7000, 5000],
            min_old_incr_kb: [10000, 5000, 7000, 5000],
        },
        user_s: [126.5, 129.2, 110.4, 132.4],
        system_s: [34.1, 46.0, 31.0, 42.2],
        clock_s: [595.0, 647.0, 369.0, 539.0],
        pages: [
            [242, 150, 2428, 132],
            [0, 111, 1797, 94],
            [4944, 6678, 4162, 5136],
            [10783, 10697, 5630, 10715],
            [0, 9358, 5340, 9285],
            [3113, 610, 2641, 520],
            [0, 12419, 428, 2917],
            [15135, 11246, 9509, 8529],
            [0, 0, 8416, 10522],
        ],
    },
    Appendix {
        figure: 21,
        client: "primes",
        copy_back: false,
        parameters: Parameters::Modified {
            mem_lim_kb: [0, 2500, 0, 8500],
            min_new_size_kb: [4000, 4500, 5000, 4500],
            min_old_incr_kb: [4000, 500, 1000, 4000],
        },
        user_s: [397.2, 399.1, 398.7, 394.1],
        system_s: [5.8, 6.2, 6.7, 14.2],
        clock_s: [404.0, 408.0, 409.0, 415.0],
        pages: [
            [26, 13, 515, 1529],
            [0, 0, 0, 738],
            [0, 0, 0, 0],
            [3182, 2703, 2417, 4708],
            [0, 0, 0, 3121],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 7178],
        ],
    },
    Appendix {
        figure: 22,
        client: "compiler",
        copy_back: true,
        parameters: Parameters::Modified {
            mem_lim_kb: [3500, 3000, 10000, 0],
            min_new_size_kb: [2500, 500, 1000, 500],
            min_old_incr_kb: [3000, 3500, 5500, 5000],
        },
        user_s: [347.7, 336.5, 287.7, 312.8],
        system_s: [35.4, 26.9, 71.6, 78.1],
        clock_s: [1011.0, 686.0, 671.0, 624.0],
        pages: [
            [15, 20, 35, 15],
            [0, 17, 221, 189],
            [3736, 2294, 1038, 591],
            [4759, 4790, 6212, 4788],
            [0, 2002, 37656, 31406],
            [7670, 3183, 3189, 2488],
            [0, 2941, 459, 0],
            [12372, 5505, 4537, 3079],
            [0, 0, 39712, 33506],
        ],
    },
    Appendix {
        figure: 23,
        client: "sort",
        copy_back: true,
        parameters: Parameters::Modified {
            mem_lim_kb: [0, 9000, 6000, 9000],
            min_new_size_kb: [5500, 5500, 7500, 5000],
            min_old_incr_kb: [10500, 5500, 6500, 5000],
        },
        user_s: [111.7, 146.0, 128.7, 161.8],
        system_s: [31.6, 62.4, 41.9, 54.9],
        clock_s: [1231.0, 1970.0, 795.0, 1306.0],
        pages: [
            [39, 36, 1442, 42],
            [0, 80, 2314, 129],
            [8364, 18564, 7653, 12482],
            [7695, 7480, 6607, 6752],
            [0, 12006, 6201, 11950],
            [9632, 11583, 3502, 7548],
            [0, 12086, 245, 3848],
            [21181, 31678, 13317, 21936],
            [0, 0, 10386, 9208],
        ],
    },
    Appendix {
        figure: 24,
        client: "primes",
        copy_back: true,
        parameters: Parameters::Modified {
            mem_lim_kb: [0, 2500, 0, 8500],
            min_new_size_kb: [4000, 4500, 5000, 4500],
            min_old_incr_kb: [4000, 500, 1000, 4000],
        },
        user_s: [405.5, 401.3, 406.6, 398.7],
        system_s: [5.3, 4.5, 6.6, 10.8],
        clock_s: [415.0, 408.0, 419.0, 418.0],
        pages: [
            [31, 20, 440, 592],
            [0, 0, 0, 1199],
            [0, 0, 0, 0],
            [2175, 1529, 1458, 2718],
            [0, 0, 0, 1738],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 3328],
        ],
    },
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
    fn the_headlines_of_the_text_are_in_the_tables() {
        let clock = |client, original, copy_back, mode: usize| {
            appendix(client, original, copy_back).map_or(0.0, |one| one.clock_s[mode])
        };
        // "The overall improvement is almost a factor of four."
        let compiler = clock("compiler", true, true, 0) / clock("compiler", false, false, 3);
        let sort = clock("sort", true, true, 0) / clock("sort", false, false, 2);
        assert!((3.7..4.0).contains(&compiler) && (3.7..4.0).contains(&sort), "{compiler} {sort}");
        // "for the new allocation scheme, the pager actually performs worse than without the pager"
        assert!(clock("sort", false, false, 1) > clock("sort", false, false, 0));
    }
}
