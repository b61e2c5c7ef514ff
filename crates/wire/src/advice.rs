//! The advice protocol: a runtime reports the state of its heap to a governor, and receives a target size.
//!
//! The transport is a Unix socket of packets (`SOCK_SEQPACKET`) at the path in [`ADVICE_ENV`]. Every message
//! is one packet of [`MESSAGE_BYTES`], always little-endian. [`Report`] and [`Target`] explain the fields:
//!
//! ```text
//!          0       4        6      8        16       24          32          40            48          64
//! report   │ magic │ version│ kind │ live   │ cached │ allocated │ collected │ collections │ 0 … 0     │
//! target   │ magic │ version│ kind │ heap   │ job    │ job holds │ urgency · valid, ms     │ 0 … 0     │
//!                                                                 32      36       40
//! ```
//!
//! The client connects and sends reports, usually about once a second. The governor answers each with a
//! target, perhaps later, and sends a new target when one changes. A message of another magic, version, kind
//! or length ends the connection. Reserved fields are sent as zero and ignored, so that a later version can
//! give them a meaning that older readers can ignore.
//!
//! Neither side depends on the other. A client without an answer drops its last target when that target's
//! validity ends, and continues as without a governor. A governor without reports relies on the kernel's
//! figures.

/// The environment variable that names the socket.
pub const ADVICE_ENV: &str = "VELLUM_ADVICE";
/// Bytes of every message.
pub const MESSAGE_BYTES: usize = 64;
/// The first four bytes of every message.
pub const MAGIC: [u8; 4] = *b"VADV";
/// The protocol's version.
pub const VERSION: u16 = 1;

const REPORT: u16 = 1;
const TARGET: u16 = 2;

/// An encoded message.
pub type Message = [u8; MESSAGE_BYTES];

/// The state of a process's heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes in use by the program.
    pub live: u64,
    /// Bytes of the cache that hold frames.
    pub cached: u64,
    /// Bytes allocated since the process began; their increase is the rate of allocation.
    pub allocated: u64,
    /// Nanoseconds of garbage collection since then; 0 without a collector.
    pub collected_ns: u64,
    /// Collections since then.
    pub collections: u64,
}

/// The urgency of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Urgency {
    /// Memory is not short: approach the target at leisure.
    #[default]
    None = 0,
    /// Memory is short: return the excess now.
    Soon = 1,
    /// The job is about to be suspended: return as much as possible.
    Now = 2,
}

/// A target for the size of a process's heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The limit of the live and cached memory of this process, in bytes.
    pub heap: u64,
    /// The limit of the whole job, in bytes.
    pub job: u64,
    /// The memory of the whole job, in bytes.
    pub job_holds: u64,
    /// The urgency.
    pub urgency: Urgency,
    /// The validity in milliseconds, if no further target arrives.
    pub valid_ms: u32,
}

impl Report {
    /// The report as a message.
    #[must_use]
    pub fn encode(&self) -> Message {
        let mut message = head(REPORT);
        let words = [self.live, self.cached, self.allocated, self.collected_ns, self.collections];
        for (at, word) in words.into_iter().enumerate() {
            put(&mut message, 8 + 8 * at, &word.to_le_bytes());
        }
        message
    }

    /// Parses a received message; `None` if it is not a report of this version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Report> {
        let message = checked(bytes, REPORT)?;
        let word = |at: usize| word(message, 8 + 8 * at);
        Some(Report {
            live: word(0),
            cached: word(1),
            allocated: word(2),
            collected_ns: word(3),
            collections: word(4),
        })
    }
}

impl Target {
    /// The target as a message.
    #[must_use]
    pub fn encode(&self) -> Message {
        let mut message = head(TARGET);
        for (at, word) in [self.heap, self.job, self.job_holds].into_iter().enumerate() {
            put(&mut message, 8 + 8 * at, &word.to_le_bytes());
        }
        put(&mut message, 32, &(self.urgency as u32).to_le_bytes());
        put(&mut message, 36, &self.valid_ms.to_le_bytes());
        message
    }

    /// Parses a received message; `None` if it is not a target of this version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Target> {
        let message = checked(bytes, TARGET)?;
        let both = word(message, 32);
        let urgency = match both as u32 {
            0 => Urgency::None,
            1 => Urgency::Soon,
            2 => Urgency::Now,
            _ => return None,
        };
        Some(Target {
            heap: word(message, 8),
            job: word(message, 16),
            job_holds: word(message, 24),
            urgency,
            valid_ms: (both >> 32) as u32,
        })
    }
}

fn head(kind: u16) -> Message {
    let mut message = [0; MESSAGE_BYTES];
    put(&mut message, 0, &MAGIC);
    put(&mut message, 4, &VERSION.to_le_bytes());
    put(&mut message, 6, &kind.to_le_bytes());
    message
}

fn checked(bytes: &[u8], kind: u16) -> Option<&Message> {
    let message: &Message = bytes.try_into().ok()?;
    (message[..8] == head(kind)[..8]).then_some(message)
}

fn put(message: &mut Message, at: usize, bytes: &[u8]) {
    message[at..at + bytes.len()].copy_from_slice(bytes);
}

fn word(message: &Message, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORTED: Report =
        Report { live: 1, cached: 2 << 40, allocated: u64::MAX, collected_ns: 4, collections: 5 };
    const TARGETED: Target =
        Target { heap: u64::MAX, job: 2, job_holds: 3, urgency: Urgency::Soon, valid_ms: 5000 };

    #[test]
    fn messages_come_back_as_they_were_sent() {
        assert_eq!(Report::decode(&REPORTED.encode()), Some(REPORTED));
        assert_eq!(Target::decode(&TARGETED.encode()), Some(TARGETED));
        assert_eq!(Report::decode(&TARGETED.encode()), None);
        assert_eq!(Target::decode(&REPORTED.encode()), None);
    }

    #[test]
    fn the_layout_is_as_documented() {
        let message = TARGETED.encode();
        assert_eq!(&message[..8], b"VADV\x01\x00\x02\x00");
        assert_eq!((message[16], message[24], message[32]), (2, 3, 1));
        assert_eq!(message[36..40], 5000u32.to_le_bytes());
        assert!(message[40..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn garbage_is_refused() {
        let good = REPORTED.encode();
        for length in 0..MESSAGE_BYTES {
            assert_eq!(Report::decode(&good[..length]), None);
        }
        for at in 0..8 {
            let mut bad = good;
            bad[at] ^= 0x40;
            assert_eq!(Report::decode(&bad), None, "byte {at}");
        }
        let mut urgent = TARGETED.encode();
        urgent[32] = 3;
        assert_eq!(Target::decode(&urgent), None);
    }
}
