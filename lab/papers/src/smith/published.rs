//! Tables 2 to 7 of Smith 1998 as numbers, read from `published.json` and indexed by client.
//!
//! Times are seconds on a 256 MB UltraSparc-5; a word was four bytes. Runs that were impossible, and figures
//! illegible in our copy, are left out. Table 7's figures here are the averages, which the paper plots.

use super::Client;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Bytes of a word in the paper.
pub(super) const WORD_BYTES: f64 = 4.0;

static TABLES: LazyLock<BTreeMap<String, Published>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("published.json")).expect("the file beside this one is complete")
});

/// A row of Table 2.
#[derive(Debug, Clone, Copy, Deserialize)]
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

/// A row of Table 3: averages per collection. A page had 2 KB.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Roots {
    /// Words that led to an object.
    pub(super) roots: f64,
    pub(super) pages: f64,
    /// Roots per promoted page, averaged over the collections.
    pub(super) a_page: f64,
    /// Unused memory on promoted pages, KB.
    pub(super) lost_kb: f64,
}

/// A row of Table 7: the heap's size in MB, then client and collector seconds of BDW and of MCC.
pub(super) type Times = (u64, Option<(f64, f64)>, Option<(f64, f64)>);

/// All published figures of one client.
#[derive(Debug, Clone, Deserialize)]
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
    pub(super) times: Vec<Times>,
}

impl Client {
    /// The paper's figures of this client.
    pub(super) fn published(&self) -> &'static Published {
        &TABLES[self.name]
    }
}

#[cfg(test)]
mod tests {
    use crate::smith::CLIENTS;

    #[test]
    fn tables_agree_with_each_other() {
        for published in CLIENTS.iter().map(|client| client.published()) {
            assert!((98.0..=102.0).contains(&published.phases.iter().sum::<f64>()), "{published:?}");
            assert!((98.0..=102.0).contains(&published.sizes[..4].iter().sum::<f64>()), "{published:?}");
            let heaps: Vec<u64> = published.times.iter().map(|row| row.0).collect();
            assert!(heaps.is_sorted() && heaps.last() == Some(&64));
        }
    }
}
