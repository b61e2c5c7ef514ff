//! The records in a perf event's ring: samples, mapped files, forks, executed programs, and lost records.

/// Bytes of a record's head: kind, flags, length.
pub(super) const HEAD_BYTES: usize = 8;
/// Bytes between the numbers of a mapping's record and its path: device, inode and generation, or a build id;
/// protection and flags.
const MAP_PATH_AT: usize = 32;
/// Bytes of the identity behind every record but a sample: thread, time, identifier.
const IDENTITY_BYTES: usize = 24;
const REGISTERS_ABI_64: u64 = 2;

const LOST: u32 = 2;
const COMM: u32 = 3;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;

/// The name of a thread changed because a program was executed.
const MISC_COMM_EXEC: u16 = 1 << 13;

/// A [sample](super::Opening::sampled).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The number of the event.
    pub id: u64,
    /// The process.
    pub pid: u32,
    /// The instruction pointer in user mode.
    pub pc: u64,
    /// The stack pointer in user mode.
    pub sp: u64,
    /// The frame pointer in user mode.
    pub bp: u64,
    /// The stack from `sp` on.
    pub stack: Vec<u8>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are called what they are")]
pub enum Record {
    /// An event happened.
    Sample(Sample),
    /// A file was mapped to be executed.
    Map { pid: u32, start: u64, bytes: u64, offset: u64, path: Vec<u8> },
    /// A process was forked, or a thread was started (then both are the same process).
    Fork { pid: u32, parent: u32 },
    /// A process executes another program.
    Exec { pid: u32 },
    /// The kernel held samples back for a while: there were more than it allows.
    Throttled,
    /// The ring was full, and this number of records was dropped.
    Lost(u64),
}

struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

impl Record {
    /// A record's time and contents. `None` of records of other kinds, and of incomplete records.
    pub fn parse(record: &[u8]) -> Option<(u64, Record)> {
        let mut words = Words(record);
        let (kind, misc) = (words.u32()?, words.u32()? as u16);
        if kind == SAMPLE {
            return sample(words);
        }
        let (body, identity) = words.0.split_at_checked(words.0.len().checked_sub(IDENTITY_BYTES)?)?;
        let (mut words, time) = (Words(body), Words(&identity[8..]).u64()?);
        let record = match kind {
            MMAP2 => {
                let (pid, _thread) = (words.u32()?, words.u32()?);
                let (start, bytes, offset) = (words.u64()?, words.u64()?, words.u64()?);
                let path = words.0.get(MAP_PATH_AT..)?;
                let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
                Record::Map { pid, start, bytes, offset, path: path[..end].to_vec() }
            }
            FORK => Record::Fork { pid: words.u32()?, parent: words.u32()? },
            COMM if misc & MISC_COMM_EXEC != 0 => Record::Exec { pid: words.u32()? },
            THROTTLE => Record::Throttled,
            LOST => {
                let _identifier = words.u64()?;
                Record::Lost(words.u64()?)
            }
            _ => return None,
        };
        Some((time, record))
    }
}

fn sample(mut words: Words<'_>) -> Option<(u64, Record)> {
    let (id, pid, _thread, time) = (words.u64()?, words.u32()?, words.u32()?, words.u64()?);
    // A thread of the kernel has no registers of a program.
    if words.u64()? != REGISTERS_ABI_64 {
        return None;
    }
    let (bp, sp, pc) = (words.u64()?, words.u64()?, words.u64()?);
    let reserved = usize::try_from(words.u64()?).ok()?;
    let (stack, after) = words.0.split_at_checked(reserved)?;
    let filled = if reserved == 0 { 0 } else { usize::try_from(Words(after).u64()?).ok()?.min(reserved) };
    Some((time, Record::Sample(Sample { id, pid, pc, sp, bp, stack: stack[..filled].to_vec() })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let head = u64::from(kind) | u64::from(misc) << 32 | ((8 + 8 * words.len()) as u64) << 48;
        std::iter::once(&head).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_frame_is_read_with_the_stack_that_is_there() {
        let pid = 5 | 6 << 32;
        let stack = u64::from_ne_bytes([1; 8]);
        let whole = record(SAMPLE, 0, &[7, pid, 99, REGISTERS_ABI_64, 0xb, 0x5, 0x1, 16, stack, stack, 8]);
        let (time, found) = Record::parse(&whole).unwrap();
        let frame = Sample { id: 7, pid: 5, pc: 1, sp: 5, bp: 11, stack: vec![1; 8] };
        assert_eq!((time, found), (99, Record::Sample(frame)));
        for cut in 0..whole.len() {
            assert_eq!(Record::parse(&whole[..cut]), None);
            let _ = Record::parse(&[&record(MMAP2, 0, &[]), &whole[8..cut.max(8)]].concat());
        }
    }

    #[test]
    fn what_happened_to_processes_is_read_with_its_time() {
        let identity = [0, 9, 0];
        let of = |kind, misc, body: &[u64]| Record::parse(&record(kind, misc, &[body, &identity].concat()));
        assert_eq!(of(FORK, 0, &[5 | 4 << 32]), Some((9, Record::Fork { pid: 5, parent: 4 })));
        assert_eq!(of(COMM, MISC_COMM_EXEC, &[5]), Some((9, Record::Exec { pid: 5 })));
        assert_eq!((of(LOST, 0, &[5, 12]), of(77, 0, &[1])), (Some((9, Record::Lost(12))), None));
        assert_eq!((of(COMM, 0, &[5]), of(THROTTLE, 0, &[])), (None, Some((9, Record::Throttled))));
        let path = u64::from_ne_bytes(*b"/bin/sh\0");
        let map = of(MMAP2, 2, &[5, 0x1000, 0x2000, 0x3000, 0, 0, 0, 0, path]);
        let expected =
            Record::Map { pid: 5, start: 0x1000, bytes: 0x2000, offset: 0x3000, path: b"/bin/sh".to_vec() };
        assert_eq!(map, Some((9, expected)));
    }
}
