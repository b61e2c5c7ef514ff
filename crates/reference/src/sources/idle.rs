//! References by the idle flag of each physical page frame.
//!
//! Setting a frame's flag in `/sys/kernel/mm/page_idle/bitmap` clears the accessed bits of every mapping of
//! it; reading the flag looks at those bits again. Which frames a process has, `/proc/PID/pagemap` says:
//!
//! ```text
//! pagemap   page ─▶ frame
//! bitmap    bit (frame mod 64) of word (frame / 64): 1 idle since it was set, 0 referenced
//! ```
//!
//! Advantages over accessed bits: no mapping of the process is locked for writing, and the kernel's own page
//! replacement loses no hint (it marks frames whose bit was taken). It is the most expensive source: two
//! files by page, and a walk over all mappings of each frame.
//!
//! What it does not see:
//! - Whose reference it was: a frame that several processes have mapped is referenced if any of them has.
//!   Pages of files are therefore looked at only where no other process has them mapped.
//! - Frames that are on no list of the kernel's page replacement: they never become idle, and count as
//!   referenced.
//! - Parts of a huge page: the flag is that of its first frame, found by `/proc/kpageflags`, and counts for
//!   the whole.
//!
//! Source: Linux, Documentation/admin-guide/mm/idle_page_tracking.rst and pagemap.rst.

use super::accessed::{REARM, thread_cpu};
use super::stale::LEFT_BY_OTHERS;
use super::status::Status;
use crate::source::{Count, PerProcess, SourceError, SourceKind, Spent};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_process::{Bytes, Pid, procfs};

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";
const FLAGS: &str = "/proc/kpageflags";
/// What a page costs to set and to look at, until that is measured.
const COUNT: Duration = Duration::from_nanos(1000);
/// Bytes of a word of the bitmap, of an entry of `pagemap`, and of one of `kpageflags`.
const WORD: u64 = 8;
/// Frames to a word.
const FRAMES: u64 = 64;
/// In an entry of `pagemap`: the page is there; it is of a file or shared memory; only one process has it
/// mapped; its frame.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
const FRAME: u64 = (1 << 55) - 1;
/// In an entry of `kpageflags`: the frame is one of a larger page, and not its first; of a transparent huge
/// page.
const TAIL: u64 = 1 << 16;
const HUGE: u64 = 1 << 22;
/// Frames of the largest page whose first frame is looked for.
const LARGEST: u64 = (vellum_sys::HUGE / vellum_sys::PAGE) as u64;
/// Entries of `pagemap` that are read at once.
const ENTRIES: usize = 8192;
/// Words that lie further apart than this are read apart.
const GAP: u64 = 64;

/// Whether idle flags can be read and set here.
///
/// # Errors
/// Why not, and what to do.
pub(super) fn available() -> Result<(), String> {
    let needs = |path: &str, what: &str| {
        let what = what.to_owned();
        let path = path.to_owned();
        move |why: io::Error| format!("{path}: {why}; it needs {what}")
    };
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(BITMAP)
        .map_err(needs(BITMAP, "CONFIG_IDLE_PAGE_TRACKING, and root"))?;
    File::open(FLAGS).map_err(needs(FLAGS, "CONFIG_PROC_PAGE_MONITOR, and root"))?;
    Ok(())
}

/// Idle flags of frames.
#[derive(Debug)]
pub struct IdleBitmap {
    bitmap: File,
    flags: File,
    processes: PathBuf,
}

/// A frame whose flag stands for some pages of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    number: u64,
    huge: bool,
}

impl IdleBitmap {
    /// Opens the kernel's files.
    ///
    /// # Errors
    /// Why that cannot be, and what to do.
    pub fn open() -> Result<IdleBitmap, String> {
        available()?;
        IdleBitmap::at(BITMAP.as_ref(), FLAGS.as_ref(), "/proc".as_ref()).map_err(|why| why.to_string())
    }

    fn at(bitmap: &Path, flags: &Path, processes: &Path) -> io::Result<IdleBitmap> {
        Ok(IdleBitmap {
            bitmap: OpenOptions::new().read(true).write(true).open(bitmap)?,
            flags: File::open(flags)?,
            processes: processes.to_owned(),
        })
    }

    /// The frames of a process's pages, in order, one for each page.
    fn frames(&self, pid: Pid) -> Result<Vec<Frame>, SourceError> {
        let failed = |source| SourceError::of("read the pagemap", pid, source);
        let place = self.processes.join(pid.to_string());
        let maps = procfs::text(place.join("maps")).map_err(failed)?;
        let pagemap = File::open(place.join("pagemap")).map_err(failed)?;
        let mut numbers = Vec::new();
        let mut buffer = vec![0; ENTRIES * WORD as usize];
        for (start, end) in maps.lines().filter_map(range) {
            let (mut at, last) = (start / vellum_sys::PAGE as u64, end / vellum_sys::PAGE as u64);
            while at < last {
                let wanted = (last - at).min(ENTRIES as u64) * WORD;
                let read = pagemap.read_at(&mut buffer[..wanted as usize], at * WORD).map_err(failed)?;
                let entries = read / WORD as usize;
                numbers.extend(words(&buffer[..read]).filter_map(frame));
                if entries == 0 {
                    break;
                }
                at += entries as u64;
            }
        }
        numbers.sort_unstable();
        self.first_frames(&numbers).map_err(failed)
    }

    /// For each frame, in order, the one whose flag stands for it.
    fn first_frames(&self, numbers: &[u64]) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::with_capacity(numbers.len());
        for block in numbers.chunk_by(|a, b| a / LARGEST == b / LARGEST) {
            let Some(first) = block.first().map(|number| number / LARGEST * LARGEST) else { continue };
            let mut bytes = vec![0; (LARGEST * WORD) as usize];
            let read = self.flags.read_at(&mut bytes, first * WORD)?;
            let flags: Vec<u64> = words(&bytes[..read]).collect();
            let of = |number: u64| flags.get((number - first) as usize).copied().unwrap_or(0);
            for number in block {
                let head = (first..=*number).rev().find(|number| of(*number) & TAIL == 0).unwrap_or(*number);
                frames.push(Frame { number: head, huge: of(*number) & HUGE != 0 });
            }
        }
        frames.sort_unstable();
        Ok(frames)
    }

    /// Goes through the words of the bitmap that hold these frames, in runs of words that lie near each
    /// other.
    fn words(
        &self,
        frames: &[Frame],
        mut work: impl FnMut(&File, u64, &[Frame], &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let word = |frame: &Frame| frame.number / FRAMES;
        for run in frames.chunk_by(|a, b| word(b) - word(a) <= GAP) {
            let (Some(first), Some(last)) = (run.first().map(word), run.last().map(word)) else { continue };
            let mut bytes = vec![0; ((last - first + 1) * WORD) as usize];
            work(&self.bitmap, first, run, &mut bytes)?;
        }
        Ok(())
    }
}

impl PerProcess for IdleBitmap {
    fn kind(&self) -> SourceKind {
        SourceKind::IdleBitmap
    }

    fn clear(&mut self, pid: Pid) -> Result<Spent, SourceError> {
        let cpu = thread_cpu();
        let frames = self.frames(pid)?;
        let set = self.words(&frames, |bitmap, first, frames, bytes| {
            for frame in frames {
                let at = frame.number - first * FRAMES;
                // Words are of this machine's byte order.
                let place = (at / FRAMES * WORD) as usize;
                let word: &mut [u8] = &mut bytes[place..place + WORD as usize];
                let mut value = [0; WORD as usize];
                value.copy_from_slice(word);
                word.copy_from_slice(&(u64::from_ne_bytes(value) | 1 << (at % FRAMES)).to_ne_bytes());
            }
            // Zeros change nothing.
            bitmap.write_all_at(bytes, first * WORD)
        });
        set.map_err(|source| SourceError::of("set the idle flags", pid, source))?;
        Ok(Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() })
    }

    fn count(&mut self, pid: Pid) -> Result<(Count, Spent), SourceError> {
        let cpu = thread_cpu();
        let status = Status::of(pid)?;
        let frames = self.frames(pid)?;
        let (mut referenced, mut huge) = (0u64, 0u64);
        let read = self.words(&frames, |bitmap, first, frames, bytes| {
            bitmap.read_exact_at(bytes, first * WORD)?;
            let words: Vec<u64> = words(bytes).collect();
            for frame in frames {
                let at = frame.number - first * FRAMES;
                referenced += u64::from(words[(at / FRAMES) as usize] >> (at % FRAMES) & 1 == 0);
                huge += u64::from(frame.huge);
            }
            Ok(())
        });
        read.map_err(|source| SourceError::of("read the idle flags", pid, source))?;
        let bytes = |pages: u64| Bytes(pages * vellum_sys::PAGE as u64);
        let looked_at = bytes(frames.len() as u64);
        let count = Count {
            referenced: bytes(referenced),
            resident: status.resident.max(looked_at),
            huge: bytes(huge),
            swapped: status.swapped,
            shared: Bytes(status.resident.0.saturating_sub(looked_at.0)),
            twice: Bytes(0),
        };
        Ok((count, Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() }))
    }

    fn forget(&mut self, _: Pid) {}

    fn caveat(&self) -> Option<&'static str> {
        Some(LEFT_BY_OTHERS)
    }

    fn count_a_page(&self) -> Duration {
        COUNT
    }

    fn penalty_a_page(&self) -> Duration {
        REARM
    }
}

/// Where a mapping is, by its line of `maps`.
fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let range = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    // What lies in the kernel's half has no entries.
    (range.1 <= 1 << 63).then_some(range)
}

/// The frame in an entry of `pagemap`, if only this process has the page mapped.
fn frame(entry: u64) -> Option<u64> {
    let ours = entry & OF_FILE == 0 || entry & EXCLUSIVE != 0;
    Some(entry & FRAME).filter(|frame| entry & PRESENT != 0 && ours && *frame != 0)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files laid out as the kernel's are documented to be: a process of six pages in two mappings.
    struct Layout {
        folder: tempfile::TempDir,
        source: IdleBitmap,
    }

    fn file(path: &Path, words: &[(u64, u64)]) {
        let file = File::create(path).unwrap();
        for (at, word) in words {
            file.write_all_at(&word.to_ne_bytes(), at * WORD).unwrap();
        }
    }

    fn layout() -> Layout {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let process = path(&Pid::me().to_string());
        std::fs::create_dir(&process).unwrap();
        std::fs::write(process.join("maps"), "10000-14000 rw-p 0 0:0 0\n20000-22000 r--p 0 0:0 9 /x\n")
            .unwrap();
        let pagemap = [
            (0x10, PRESENT | 130),
            (0x11, PRESENT | 5),
            (0x12, 1 << 62 | 99),
            // The third frame of a larger page that begins at 512.
            (0x13, PRESENT | 514),
            (0x20, PRESENT | OF_FILE | 7),
            (0x21, PRESENT | OF_FILE | EXCLUSIVE | 8),
        ];
        file(&process.join("pagemap"), &pagemap);
        file(&path("flags"), &[(513, TAIL | HUGE), (514, TAIL | HUGE), (1023, 0)]);
        file(&path("bitmap"), &[(16, 0)]);
        let source = IdleBitmap::at(&path("bitmap"), &path("flags"), folder.path()).unwrap();
        Layout { folder, source }
    }

    #[test]
    fn frames_are_found_and_those_of_others_left_out() {
        let frames = layout().source.frames(Pid::me()).unwrap();
        let small = |number| Frame { number, huge: false };
        assert_eq!(frames, [small(5), small(8), small(130), Frame { number: 512, huge: true }]);
    }

    #[test]
    fn flags_that_are_set_are_idle_until_they_are_cleared() {
        let Layout { folder, mut source } = layout();
        let page = vellum_sys::PAGE as u64;
        assert_eq!(
            source.count(Pid::me()).unwrap().0.referenced,
            Bytes(4 * page),
            "nothing is idle at first"
        );
        source.clear(Pid::me()).unwrap();
        let bits = |word: u64| {
            let mut bytes = [0; 8];
            File::open(folder.path().join("bitmap")).unwrap().read_exact_at(&mut bytes, word * WORD).unwrap();
            u64::from_ne_bytes(bytes)
        };
        assert_eq!((bits(0), bits(1), bits(2), bits(8)), (1 << 5 | 1 << 8, 0, 1 << 2, 1));
        let count = source.count(Pid::me()).unwrap().0;
        assert_eq!((count.referenced, count.huge), (Bytes(0), Bytes(page)));
        // What the kernel does when it finds an accessed bit.
        let bitmap = OpenOptions::new().write(true).open(folder.path().join("bitmap")).unwrap();
        bitmap.write_all_at(&[0; 8], 2 * WORD).unwrap();
        assert_eq!(source.count(Pid::me()).unwrap().0.referenced, Bytes(page));
    }

    #[test]
    fn a_process_that_is_gone_has_ended() {
        let mut source = layout().source;
        assert!(matches!(source.clear(Pid(i32::MAX)), Err(SourceError::Ended(_))));
    }
}
