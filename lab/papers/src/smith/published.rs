//! Tables 2 to 7 of Smith 1998, as numbers.
//!
//! Times are seconds on a 256 MB UltraSparc-5; a word was four bytes. Runs that were impossible, and figures
//! illegible in our copy, are left out. Table 7's figures here are the averages, which the paper plots.

/// Bytes of a word in the paper.
pub(super) const WORD_BYTES: f64 = 4.0;

/// A row of Table 2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basics {
    /// Total allocation, MB.
    pub(super) allocated_mb: f64,
    /// Most live data after any collection, KB.
    pub(super) live_kb: f64,
    pub(super) collections: f64,
    /// The mean time of a collection, ms.
    pub(super) collection_ms: f64,
    pub(super) live_objects: f64,
}

const fn basics([allocated_mb, live_kb, collections, collection_ms, live_objects]: [f64; 5]) -> Basics {
    Basics { allocated_mb, live_kb, collections, collection_ms, live_objects }
}

/// A row of Table 3: averages a collection. A page had 2 KB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roots {
    /// Words that led to an object.
    pub(super) roots: f64,
    pub(super) pages: f64,
    /// Roots a promoted page, averaged over the collections.
    pub(super) a_page: f64,
    /// Unused memory on promoted pages, KB.
    pub(super) lost_kb: f64,
}

const fn roots(roots: f64, pages: f64, a_page: f64, lost_kb: f64) -> Roots {
    Roots { roots, pages, a_page, lost_kb }
}

/// A row of Table 7: the heap's size in MB, then client and collector seconds of BDW and of MCC.
pub(super) type Times = (u64, Option<(f64, f64)>, Option<(f64, f64)>);

/// All published figures of one client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    /// Table 2.
    pub(super) basics: Basics,
    /// Table 3.
    pub(super) roots: Roots,
    /// Table 4: percent of the collector's time in pin, root, graph, free, sweep.
    pub(super) phases: [f64; 5],
    /// Table 5: percent of objects of 1, 2, 3, 4 and more words, and of the data that was atomic.
    pub(super) sizes: [f64; 5],
    /// Table 6: slowdown of the client in percent by MCC, and by BDW with one more word in each object.
    pub(super) slowdown: (f64, f64),
    /// Table 7.
    pub(super) times: &'static [Times],
}

const fn both(mb: u64, bdw: (f64, f64), mcc: (f64, f64)) -> Times {
    (mb, Some(bdw), Some(mcc))
}

const fn bdw(mb: u64, bdw: (f64, f64)) -> Times {
    (mb, Some(bdw), None)
}

pub(super) const CHECKSUM: Published = Published {
    basics: basics([979.0, 4.0, 262.0, 1.0, 46.0]),
    roots: roots(35.0, 5.0, 7.0, 8.0),
    phases: [1.0, 28.0, 4.0, 63.0, 4.0],
    sizes: [0.0, 50.0, 50.0, 0.0, 0.0],
    slowdown: (23.6, 11.0),
    times: &[
        both(1, (15.77, 11.72), (19.37, 1.69)),
        both(2, (15.73, 10.87), (19.32, 1.35)),
        both(4, (15.75, 10.37), (19.33, 1.24)),
        both(8, (15.72, 10.35), (19.43, 1.16)),
        both(12, (15.70, 10.34), (19.47, 1.12)),
        both(16, (15.69, 10.37), (19.51, 1.11)),
        both(24, (15.72, 10.54), (19.60, 1.11)),
        both(32, (15.81, 10.64), (19.66, 1.09)),
        both(48, (15.79, 10.89), (19.83, 1.09)),
        both(64, (15.79, 11.16), (20.14, 1.09)),
    ],
};

pub(super) const KNUTH_BENDIX: Published = Published {
    basics: basics([103.0, 1136.0, 15.0, 161.0, 84_732.0]),
    roots: roots(6126.0, 917.0, 7.0, 1358.0),
    phases: [0.0, 45.0, 42.0, 1.0, 12.0],
    sizes: [31.0, 38.0, 31.0, 0.0, 2.0],
    slowdown: (0.3, 2.6),
    times: &[
        bdw(4, (18.16, 2.29)),
        bdw(8, (18.19, 1.85)),
        bdw(12, (18.18, 1.80)),
        both(16, (18.24, 1.56), (18.30, 2.42)),
        both(24, (18.45, 1.75), (18.34, 0.62)),
        both(32, (18.64, 1.72), (18.49, 1.45)),
        both(48, (19.08, 2.05), (18.66, 0.50)),
        both(64, (19.57, 2.24), (18.93, 0.64)),
    ],
};

pub(super) const LEXGEN: Published = Published {
    basics: basics([75.0, 503.0, 19.0, 28.0, 28_374.0]),
    roots: roots(175.0, 46.0, 4.0, 112.0),
    phases: [0.0, 7.0, 88.0, 2.0, 3.0],
    sizes: [0.0, 87.0, 4.0, 8.0, 26.0],
    slowdown: (-15.0, 8.1),
    times: &[
        bdw(2, (18.88, 1.95)),
        both(4, (19.20, 1.34), (15.47, 1.09)),
        both(8, (19.34, 1.19), (16.44, 0.59)),
        both(12, (19.07, 1.18), (16.73, 0.40)),
        both(16, (19.11, 1.26), (16.81, 0.36)),
        both(24, (19.00, 1.36), (17.07, 0.22)),
        both(32, (19.03, 1.47), (17.18, 0.17)),
        both(48, (19.06, 1.74), (17.62, 0.10)),
        both(64, (18.96, 2.03), (17.95, 0.16)),
    ],
};

pub(super) const LIFE: Published = Published {
    basics: basics([244.0, 14.0, 69.0, 1.0, 501.0]),
    roots: roots(50.0, 7.0, 8.0, 11.0),
    phases: [0.0, 33.0, 18.0, 41.0, 8.0],
    sizes: [0.0, 100.0, 0.0, 0.0, 37.0],
    slowdown: (-0.5, 31.6),
    times: &[
        both(1, (11.28, 2.93), (11.10, 0.58)),
        both(2, (11.18, 2.75), (11.12, 0.42)),
        both(4, (11.28, 2.66), (11.16, 0.31)),
        both(8, (11.26, 2.70), (11.21, 0.25)),
        both(12, (11.34, 2.76), (11.24, 0.23)),
        both(16, (11.30, 2.81), (11.27, 0.22)),
        both(24, (11.27, 2.95), (11.40, 0.22)),
        both(32, (11.46, 3.01), (11.47, 0.22)),
        both(48, (11.30, 3.31), (11.62, 0.21)),
        both(64, (11.33, 3.49), (11.88, 0.21)),
    ],
};

pub(super) const LOGIC: Published = Published {
    basics: basics([173.0, 30.0, 47.0, 5.0, 2951.0]),
    roots: roots(234.0, 47.0, 5.0, 67.0),
    phases: [0.0, 36.0, 39.0, 11.0, 14.0],
    sizes: [5.0, 62.0, 31.0, 2.0, 0.0],
    slowdown: (-12.1, 0.6),
    times: &[
        both(1, (6.77, 2.54), (5.84, 1.47)),
        both(2, (6.80, 2.29), (5.90, 0.78)),
        both(4, (6.82, 2.20), (5.90, 0.46)),
        both(12, (6.81, 2.29), (6.06, 0.26)),
        both(16, (6.83, 2.35), (6.11, 0.23)),
        both(24, (6.85, 2.47), (6.21, 0.20)),
        both(32, (6.84, 2.59), (6.33, 0.19)),
        both(48, (6.94, 2.87), (6.56, 0.17)),
        both(64, (6.93, 3.10), (6.87, 0.18)),
    ],
};

pub(super) const MERGESORT: Published = Published {
    basics: basics([328.0, 262.0, 98.0, 13.0, 26_919.0]),
    roots: roots(36.0, 10.0, 4.0, 7.0),
    phases: [0.0, 3.0, 91.0, 4.0, 2.0],
    sizes: [0.0, 100.0, 0.0, 0.0, 0.0],
    slowdown: (21.7, 20.9),
    times: &[
        bdw(1, (5.55, 20.19)),
        bdw(2, (5.56, 8.10)),
        both(4, (5.53, 5.62), (7.22, 5.62)),
        both(8, (5.53, 4.38), (6.73, 1.44)),
        both(12, (5.53, 4.08), (6.93, 1.55)),
        both(16, (5.53, 4.02), (6.99, 1.44)),
        both(24, (5.54, 4.04), (7.01, 1.06)),
        both(32, (5.61, 4.03), (7.04, 0.82)),
        both(48, (5.59, 4.16), (7.29, 0.65)),
        both(64, (5.54, 4.43), (7.44, 0.52)),
    ],
};

pub(super) const PIA: Published = Published {
    basics: basics([213.0, 111.0, 68.0, 8.0, 6637.0]),
    roots: roots(325.0, 50.0, 6.0, 78.0),
    phases: [0.0, 36.0, 44.0, 6.0, 14.0],
    sizes: [2.0, 80.0, 17.0, 1.0, 53.0],
    slowdown: (2.0, 5.9),
    times: &[
        bdw(1, (11.09, 3.12)),
        both(2, (11.04, 2.73), (11.14, 1.52)),
        both(4, (11.32, 2.61), (11.19, 2.27)),
        both(8, (11.00, 2.58), (11.21, 0.72)),
        both(12, (11.00, 2.63), (11.28, 0.59)),
        both(16, (11.02, 2.67), (11.26, 0.43)),
        both(24, (11.75, 3.03), (11.36, 0.38)),
        both(32, (11.01, 2.88), (11.41, 0.27)),
        both(48, (11.06, 3.17), (11.63, 0.25)),
        both(64, (11.18, 3.44), (11.85, 0.24)),
    ],
};

pub(super) const GROEBNER: Published = Published {
    basics: basics([1018.0, 3713.0, 92.0, 210.0, 335_480.0]),
    roots: roots(118.0, 304.0, 0.4, 585.0),
    phases: [10.0, 0.0, 88.0, 1.0, 1.0],
    sizes: [0.0, 100.0, 0.0, 0.0, 1.0],
    slowdown: (16.3, 14.4),
    times: &[
        bdw(16, (35.46, 21.79)),
        both(24, (35.40, 17.50), (41.40, 24.63)),
        both(32, (35.48, 15.82), (41.28, 19.14)),
        both(48, (35.65, 14.66), (41.80, 12.97)),
        both(64, (35.81, 14.10), (41.64, 10.11)),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_each_other() {
        for published in [CHECKSUM, KNUTH_BENDIX, LEXGEN, LIFE, LOGIC, MERGESORT, PIA, GROEBNER] {
            assert!((98.0..=102.0).contains(&published.phases.iter().sum::<f64>()), "{published:?}");
            assert!((98.0..=102.0).contains(&published.sizes[..4].iter().sum::<f64>()), "{published:?}");
            let heaps: Vec<u64> = published.times.iter().map(|row| row.0).collect();
            assert!(heaps.is_sorted() && heaps.last() == Some(&64));
        }
    }
}
