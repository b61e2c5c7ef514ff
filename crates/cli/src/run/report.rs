//! The data of a report of `vellum run`, from which the text, the JSON and the HTML page are made.
//!
//! Field names and order are the JSON schema `vellum.run/1`, documented in docs/run-schema.md. The meaning
//! of a field never changes within a version; new fields may be added. Times are nanoseconds and sizes are
//! bytes, both whole numbers. A value that could not be measured is null, and named in `missing`.

use super::working_set::WorkingSet;
use crate::heap;
use crate::outcome::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;

pub(crate) const SCHEMA: &str = "vellum.run/1";

/// The page size of "faults avoided": Vellum's page, whatever size the kernel maps.
pub(crate) const PAGE_BYTES: u64 = 4096;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    pub(crate) vellum_version: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) program: String,
    pub(crate) started_unix_ns: u64,
    pub(crate) outcome: Outcome,
    pub(crate) exit_status: u8,
    pub(crate) time: Time,
    pub(crate) memory: Memory,
    pub(crate) faults: Faults,
    pub(crate) attachment: Attachment,
    pub(crate) pages: Pages,
    /// The requested number of page frames; a process under a limit may have fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frames_asked: Option<u64>,
    pub(crate) processes: Vec<Process>,
    pub(crate) survivors: Vec<Survivor>,
    pub(crate) sampling: Sampling,
    pub(crate) working_set: Option<WorkingSet>,
    /// The holders of memory, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heap: Option<Box<heap::Observed>>,
    pub(crate) missing: Vec<String>,
    pub(crate) samples: Samples,
}

#[derive(Debug, Serialize)]
pub(crate) struct Time {
    pub(crate) wall_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Memory {
    /// The job's peak at one moment: the highest sample, or `largest_process_peak_bytes` if it is more.
    pub(crate) peak_bytes: u64,
    pub(crate) largest_process_peak_bytes: u64,
    pub(crate) average_bytes: Option<u64>,
    /// The parts of resident memory at the peak; null without samples.
    pub(crate) at_peak: Option<PeakParts>,
}

/// Resident memory at the peak: the parts add up to `Memory::peak_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PeakParts {
    /// Blocks, stacks and data: anonymous memory except the free pages kept for reuse.
    pub(crate) in_use_bytes: u64,
    /// Free pages that Vellum kept for reuse.
    pub(crate) kept_bytes: u64,
    /// Pages of files and shared memory, mostly code.
    pub(crate) files_bytes: u64,
    /// Memory allocated and freed between two samples.
    pub(crate) unseen_bytes: u64,
}

impl PeakParts {
    /// The parts of a peak of `peak` bytes, from a sample with `files` and `kept` in `resident` bytes.
    pub(crate) fn of(peak: u64, resident: u64, files: u64, kept: u64) -> PeakParts {
        let resident = resident.min(peak);
        let files_bytes = files.min(resident);
        let kept_bytes = kept.min(resident - files_bytes);
        PeakParts {
            in_use_bytes: resident - files_bytes - kept_bytes,
            kept_bytes,
            files_bytes,
            unseen_bytes: peak - resident,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Faults {
    pub(crate) minor: u64,
    pub(crate) major: u64,
}

/// The processes that ran on Vellum's memory, and the others.
#[derive(Debug, Serialize)]
pub(crate) struct Attachment {
    pub(crate) library: String,
    pub(crate) program: Standing,
    /// The reason why it does not run on Vellum, in words.
    pub(crate) reason: Option<String>,
    pub(crate) seated_processes: u64,
    pub(crate) serving_processes: u64,
    /// Processes for which the board had no slot left.
    pub(crate) unseated_processes: u64,
    pub(crate) strangers: Vec<Stranger>,
}

/// The state of a process with respect to Vellum's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// The process allocates from Vellum.
    Serving,
    /// The library is loaded and forwards calls: the program has its own allocator.
    OwnAllocator,
    /// The library is loaded and forwards calls: a memory checker is active.
    MemoryChecker,
    Disabled,
    /// The library is loaded and forwards calls: it does not support this kernel.
    Unsuited,
    /// The library is loaded but not initialized: the process was starting or ending.
    Claimed,
    /// The library was not put into the environment, as it could not be loaded.
    NotPreloaded,
    /// The library was put into the environment, but never reported.
    NoAnswer,
}

#[derive(Debug, Serialize)]
pub(crate) struct Stranger {
    pub(crate) name: String,
    pub(crate) processes: u64,
    /// The obstacle's name (static, privileged, sanitizer, foreign), if determined.
    pub(crate) obstacle: Option<&'static str>,
    #[serde(skip)]
    pub(crate) words: Option<&'static str>,
}

/// The counters of the page layers of all processes.
#[derive(Debug, Serialize)]
pub(crate) struct Pages {
    pub(crate) counters: BTreeMap<&'static str, u64>,
    pub(crate) faults_avoided: u64,
    pub(crate) block_sizes: Vec<SizeBucket>,
}

impl Pages {
    pub(crate) fn get(&self, counter: vellum_wire::Counter) -> u64 {
        self.counters.get(counter.name()).copied().unwrap_or(0)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct SizeBucket {
    pub(crate) from_bytes: u64,
    pub(crate) below_bytes: u64,
    pub(crate) blocks: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) standing: Standing,
    /// The time of attachment, from the program's start.
    pub(crate) attached_ns: u64,
    pub(crate) counters: BTreeMap<&'static str, u64>,
}

/// A process still alive when the program had ended.
#[derive(Debug, Serialize)]
pub(crate) struct Survivor {
    pub(crate) pid: i32,
    pub(crate) name: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Sampling {
    pub(crate) looks: u64,
    pub(crate) cost_ns: u64,
}

/// The samples, a column each; all columns are equally long.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Samples {
    pub(crate) at_ns: Vec<u64>,
    pub(crate) processes: Vec<u32>,
    pub(crate) resident_bytes: Vec<u64>,
    pub(crate) resident_max_bytes: Vec<u64>,
    pub(crate) minor_faults: Vec<u64>,
    pub(crate) major_faults: Vec<u64>,
    pub(crate) cached_bytes: Vec<u64>,
    pub(crate) live_bytes: Vec<u64>,
    /// Bytes of blocks, free bytes in slabs, and bytes returned from slabs: the last counts of processes.
    pub(crate) in_use_bytes: Vec<u64>,
    pub(crate) free_in_slabs_bytes: Vec<u64>,
    pub(crate) returned_bytes: Vec<u64>,
    pub(crate) extents_out: Vec<u64>,
    pub(crate) cache_hits: Vec<u64>,
    pub(crate) warm_bytes: Vec<u64>,
}

impl Standing {
    /// The state in words, to follow "its memory".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Standing::Serving => "Vellum",
            Standing::OwnAllocator => "its own allocator",
            Standing::MemoryChecker => "a memory checker's",
            Standing::Disabled => "the C library's (disabled)",
            Standing::Unsuited => "the C library's (not of 4 KiB pages)",
            Standing::Claimed => "not known",
            Standing::NotPreloaded | Standing::NoAnswer => "the C library's",
        }
    }
}

#[cfg(test)]
pub(crate) mod sample {
    //! A report to test the writers with.

    use super::*;

    /// A run of two processes on Vellum, with some activity in each counter.
    pub(crate) fn report() -> Report {
        let counters = [
            ("extents_out", 1234),
            ("bytes_out", 5 << 30),
            ("cache_hits", 1200),
            ("bytes_warm", 4 << 30),
            ("regrown_bytes", 3 << 20),
            ("bytes_discarded", 1 << 20),
            ("flushed_decay_bytes", 7 << 20),
            ("flushed_pressure_bytes", 2 << 20),
            ("mmap_served", 1),
            ("mmap_served_bytes", 8 << 20),
            ("peak_live_bytes", 300 << 20),
        ];
        let process = |pid, name: &str| Process {
            pid,
            name: name.into(),
            standing: Standing::Serving,
            attached_ns: 2_000_000,
            counters: counters.into(),
        };
        Report {
            schema: SCHEMA,
            vellum_version: "0.0.0",
            command: vec!["python3".into(), "script <one>.py".into()],
            program: "/usr/bin/python3".into(),
            started_unix_ns: 0,
            outcome: Outcome::Exited { status: 0 },
            exit_status: 0,
            time: Time {
                wall_ns: 2_314_000_000,
                user_ns: 2_102_000_000,
                system_ns: 181_000_000,
                voluntary_switches: 3,
                involuntary_switches: 4,
            },
            memory: Memory {
                peak_bytes: 412 << 20,
                largest_process_peak_bytes: 400 << 20,
                average_bytes: Some(211 << 20),
                at_peak: Some(PeakParts::of(412 << 20, 400 << 20, 30 << 20, 10 << 20)),
            },
            faults: Faults { minor: 103_211, major: 2 },
            attachment: Attachment {
                library: "/opt/libvellum.so".into(),
                program: Standing::Serving,
                reason: None,
                seated_processes: 2,
                serving_processes: 2,
                unseated_processes: 0,
                strangers: vec![
                    Stranger {
                        name: "busybox".into(),
                        processes: 2,
                        obstacle: Some("static"),
                        words: Some("statically linked"),
                    },
                    Stranger { name: "brief".into(), processes: 1, obstacle: None, words: None },
                ],
            },
            pages: Pages {
                counters: counters.into(),
                faults_avoided: 1 << 20,
                block_sizes: vec![
                    SizeBucket { from_bytes: 16, below_bytes: 32, blocks: 1000 },
                    SizeBucket { from_bytes: 1 << 20, below_bytes: 1 << 21, blocks: 1 },
                ],
            },
            frames_asked: None,
            processes: vec![process(10, "python3"), process(11, "<b>")],
            survivors: vec![Survivor { pid: 12, name: "daemon".into() }],
            sampling: Sampling { looks: 3, cost_ns: 1_000_000 },
            working_set: None,
            heap: None,
            missing: Vec::new(),
            samples: Samples {
                at_ns: vec![1_000_000, 1_000_000_000, 2_314_000_000],
                processes: vec![1, 2, 2],
                resident_max_bytes: vec![1 << 20, 412 << 20, 300 << 20],
                minor_faults: vec![10, 100_000, 103_211],
                major_faults: vec![0, 1, 2],
                cached_bytes: vec![0, 10 << 20, 20 << 20],
                extents_out: vec![0, 1000, 1234],
                cache_hits: vec![0, 900, 1200],
                warm_bytes: vec![0, 3 << 30, 4 << 30],
                ..Samples::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_peak_add_up_to_it() {
        for [peak, resident, files, kept] in [[0; 4], [100, 50, 10, 20], [100, 200, 90, 90], [1, 100, 300, 0]]
        {
            let parts = PeakParts::of(peak, resident, files, kept);
            let sum = parts.in_use_bytes + parts.kept_bytes + parts.files_bytes + parts.unseen_bytes;
            assert_eq!(sum, peak, "{parts:?}");
        }
    }
}
