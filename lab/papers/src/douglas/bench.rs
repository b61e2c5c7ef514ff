//! `Bench`, the settings and tools that all experiments of Douglas 2011 share: the executable that
//! measures, the allocators compared (peers), and the campaign that runs it with each.

use super::WORKER;
use crate::{Progress, Scale};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use vellum_campaign::cells::twin;
use vellum_campaign::{Arm, Campaign, Cell, EXPECT, GLIBC, Launch, Missing, Peer, Sheet, VELLUM, packaged};

/// The longest time of a process.
const ALLOWED: Duration = Duration::from_secs(600);
/// The share of the memory available that an experiment may use.
const MEMORY_SHARE: f64 = 0.4;

/// From this size on, memory is backed again before each process that uses it.
const BACKED_FROM: usize = 16 << 20;

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Places {
    /// The executable that is a worker when started with the word `work` before the work's own words.
    pub worker: PathBuf,
    /// Vellum's library.
    pub library: PathBuf,
}

/// The settings and tools of the experiments.
pub struct Bench<'a> {
    /// The size of the experiments.
    pub scale: Scale,
    /// Seed of all orders and mixes.
    pub seed: u64,
    places: Places,
    peers: Vec<Peer>,
    missing: Vec<Missing>,
    available_bytes: usize,
    experiment: String,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl<'a> Bench<'a> {
    /// A bench that calls `progress` before each process.
    pub fn new(scale: Scale, seed: u64, places: Places, progress: &'a mut dyn FnMut(Progress<'_>)) -> Self {
        let (mut peers, mut missing) = (Vec::new(), Vec::new());
        for peer in packaged() {
            match peer {
                Ok(peer) => peers.push(peer),
                Err(absent) => missing.push(absent),
            }
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        peers.push(Peer { name: VELLUM, library: Some(places.library.clone()), version });
        let available_bytes = (available_bytes() as f64 * MEMORY_SHARE) as usize;
        Self { scale, seed, places, peers, missing, available_bytes, experiment: String::new(), progress }
    }

    /// All allocators found here, glibc first and Vellum last.
    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The allocators not found here.
    pub(crate) fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The sizes for which there is memory, if `copies` of each are needed at once; and a note if one is left
    /// out.
    pub(crate) fn affordable(&self, sizes: &[usize], copies: usize) -> (Vec<usize>, Option<String>) {
        let fits = |bytes: &usize| bytes.saturating_mul(copies) <= self.available_bytes;
        let kept: Vec<usize> = sizes.iter().copied().filter(fits).collect();
        let left = sizes.len() - kept.len();
        let note =
            format!("{left} of the largest sizes are left out: too little memory is available for them");
        (kept, (left > 0).then_some(note))
    }

    pub(super) fn begin(&mut self, experiment: String) {
        self.experiment = experiment;
    }

    /// Makes the host back as much memory as any experiment touches (see the work `back`). Leaves Vellum out,
    /// with the reason, if its library cannot be preloaded.
    pub(super) fn prepare(&mut self) {
        let bytes = self.scale.pick(2 << 30, 1 << 30, 1 << 20).min(self.available_bytes);
        (self.progress)(Progress {
            experiment: "start",
            done: 0,
            total: 1,
            what: "touching the memory to be used",
        });
        // If this fails, the first rounds are slower, which the medians tolerate.
        let _ = self.launch(None, "back", &[("huge_bytes", bytes.to_string())]).run(ALLOWED);
        let vellum = self.peers.pop_if(|peer| peer.name == VELLUM);
        match self.launch(vellum.as_ref(), "back", &[]).run(ALLOWED) {
            Ok(_) => self.peers.extend(vellum),
            Err(ended) => {
                let library = self.places.library.display();
                let cure = format!(
                    "{library} cannot be preloaded ({ended}); cargo build --release -p vellum-runtime"
                );
                self.missing.push(Missing { name: VELLUM, cure });
            }
        }
    }

    /// An allocator, if it was found.
    pub(crate) fn peer(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// A worker under `preload`.
    pub(crate) fn launch(&self, preload: Option<&Peer>, work: &str, params: &[(&str, String)]) -> Launch {
        let words = params.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let args = [WORKER.into(), work.into()].into_iter().chain(words).collect();
        let library = preload.and_then(|peer| peer.library.clone());
        let env = library.iter().map(|library| (EXPECT.into(), library.into())).collect();
        Launch {
            program: self.places.worker.clone(),
            args,
            env,
            folder: None,
            preload: library,
            reports: true,
        }
    }

    /// An arm with no library preloaded.
    pub(crate) fn arm(&self, label: &str, work: &str, params: &[(&str, String)]) -> Arm {
        Arm { label: label.to_owned(), launch: self.launch(None, work, params) }
    }

    /// An arm under each allocator, with glibc and Vellum twice for the controls.
    pub(crate) fn arms_of_peers(&self, work: &str, params: &[(&str, String)]) -> Vec<Arm> {
        let mut arms = Vec::new();
        for peer in &self.peers {
            let launch = self.launch(Some(peer), work, params);
            if peer.name == GLIBC || peer.name == VELLUM {
                arms.push(Arm { label: twin(peer.name), launch: launch.clone() });
            }
            arms.push(Arm { label: peer.name.to_owned(), launch });
        }
        arms
    }

    /// The command to run before an arm that touches `bytes`, so that the host has backed its memory; `None`
    /// for small blocks.
    pub(crate) fn backing(&self, bytes: usize) -> Option<Launch> {
        (bytes >= BACKED_FROM)
            .then(|| self.launch(None, "back", &[("huge_bytes", (bytes + bytes / 4).to_string())]))
    }

    pub(crate) fn campaign(&mut self, cells: &[Cell]) -> Vec<Sheet> {
        let campaign = Campaign { seed: self.seed, allowed: ALLOWED, budget: None };
        let (experiment, progress) = (&self.experiment, &mut self.progress);
        campaign.run(cells, |done, total, what| progress(Progress { experiment, done, total, what }))
    }
}

/// Memory available without swapping; a gigabyte if the kernel does not report it.
fn available_bytes() -> u64 {
    vellum_kernel::machine::memory("MemAvailable").map_or(1 << 30, |bytes| bytes.0)
}
