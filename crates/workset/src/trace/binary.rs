//! The page trace, a binary format of references: the page and time of each, in a few bytes.
//!
//! ```text
//! header    "VELPAGES"  version  log₂ of the page size  time unit  0 0 0 0 0     16 bytes
//! record    ticks since the last record     varint
//!           page minus the last page        varint, the sign in the lowest bit
//! ```
//!
//! Varints have 7 bits in each byte, lowest first; the highest bit is set if another byte follows. The first
//! record is relative to page 0 at tick 0. There is no end mark: a trace whose writer was killed is valid up
//! to its last whole record.
//!
//! Time units: 0 references, 1 instructions, 2 nanoseconds of user CPU time. The reader rejects other values
//! in the header, so that a later version can define them.

use std::io::{self, BufRead, Write};

use super::{PageSize, Reference, TimeUnit, TraceError};
use crate::unit::{Page, Ticks};

/// The first bytes of a page trace.
pub(super) const MAGIC: [u8; 8] = *b"VELPAGES";
const VERSION: u8 = 1;
const HEADER: usize = 16;
/// The error for a record that the trace cuts off.
pub(super) const CUT_OFF: &str = "is cut off";
/// The most bytes of a 64-bit number.
const VARINT_MAX: usize = 10;

/// Writes a page trace.
#[derive(Debug)]
pub struct PageTraceWriter<W> {
    out: W,
    before: Reference,
}

impl<W: Write> PageTraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The error of writing the header.
    pub fn new(mut out: W, page_size: PageSize, unit: TimeUnit) -> io::Result<Self> {
        let mut header = [0; HEADER];
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        header[8..11].copy_from_slice(&[VERSION, page_size.bytes().trailing_zeros() as u8, unit as u8]);
        out.write_all(&header)?;
        Ok(Self { out, before: Reference { page: Page(0), now: Ticks(0) } })
    }

    /// Adds a reference. If its time lies before the last one's, the last time counts.
    ///
    /// # Errors
    /// The error of writing.
    pub fn write(&mut self, reference: Reference) -> io::Result<()> {
        let passed = reference.now.since(self.before.now).0;
        let step = reference.page.0.wrapping_sub(self.before.page.0) as i64;
        let mut bytes = [0; 2 * VARINT_MAX];
        let length = put(&mut bytes, 0, passed);
        let length = put(&mut bytes, length, ((step << 1) ^ (step >> 63)) as u64);
        self.out.write_all(&bytes[..length])?;
        self.before = Reference { page: reference.page, now: Ticks(self.before.now.0 + passed) };
        Ok(())
    }

    /// The writer underneath.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn put(bytes: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    at + 1
}

/// Reads a page trace.
#[derive(Debug)]
pub struct PageTrace<R> {
    source: R,
    pub(super) page_size: PageSize,
    pub(super) unit: TimeUnit,
    pub(super) before: Reference,
    records: u64,
    /// The offset of the current record.
    offset: u64,
    failed: bool,
}

impl<R: BufRead> PageTrace<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`TraceError::Header`] if the header is invalid, or of another version.
    pub fn open(mut source: R) -> Result<Self, TraceError> {
        let mut header = [0; HEADER];
        source.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => TraceError::Header("it ends within its header"),
            _ => TraceError::Read { units: 0, source: error },
        })?;
        if header[..MAGIC.len()] != MAGIC {
            return Err(TraceError::Header("it does not begin with VELPAGES"));
        }
        if header[8] != VERSION || header[11..] != [0; 5] {
            return Err(TraceError::Header("its version is not supported"));
        }
        let page_size = 1u64.checked_shl(u32::from(header[9])).and_then(PageSize::new);
        let page_size = page_size.ok_or(TraceError::Header("its page size is none"))?;
        let units = [TimeUnit::References, TimeUnit::Instructions, TimeUnit::Nanoseconds];
        let unit = units.into_iter().find(|unit| *unit as u8 == header[10]);
        let unit = unit.ok_or(TraceError::Header("its time unit is none"))?;
        let before = Reference { page: Page(0), now: Ticks(0) };
        Ok(Self { source, page_size, unit, before, records: 0, offset: HEADER as u64, failed: false })
    }

    /// One record; `None` if the trace ends before it.
    fn record(&mut self) -> Result<Option<Reference>, TraceError> {
        let mut taken = 0;
        let Some(passed) = self.varint(&mut taken)? else { return Ok(None) };
        let Some(step) = self.varint(&mut taken)? else { return Err(self.bad(CUT_OFF)) };
        let step = (step >> 1) as i64 ^ -((step & 1) as i64);
        let Some(now) = self.before.now.0.checked_add(passed) else {
            return Err(self.bad("lies beyond the end of time"));
        };
        self.before = Reference { page: Page(self.before.page.0.wrapping_add(step as u64)), now: Ticks(now) };
        self.records += 1;
        self.offset += taken;
        Ok(Some(self.before))
    }

    /// A number; `None` if the trace ends before its first byte.
    #[inline]
    fn varint(&mut self, taken: &mut u64) -> Result<Option<u64>, TraceError> {
        let mut value = 0u64;
        for at in 0..VARINT_MAX {
            let buffer = match self.source.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(TraceError::Read { units: self.records, source }),
            };
            let Some(byte) = buffer.first().copied() else {
                return if at == 0 { Ok(None) } else { Err(self.bad(CUT_OFF)) };
            };
            self.source.consume(1);
            *taken += 1;
            let bits = u64::from(byte & 0x7f);
            if at == VARINT_MAX - 1 && bits > 1 {
                return Err(self.bad("has a number of more than 64 bits"));
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(Some(value));
            }
        }
        Err(self.bad("has a number of more than 64 bits"))
    }

    fn bad(&self, why: &'static str) -> TraceError {
        TraceError::Record { record: self.records + 1, offset: self.offset, why }
    }
}

impl<R: BufRead> Iterator for PageTrace<R> {
    type Item = Result<Reference, TraceError>;

    /// After an error there is nothing more: the start of the next record cannot be found.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.record();
        self.failed = record.is_err();
        record.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(references: &[Reference]) -> Vec<u8> {
        let mut writer = PageTraceWriter::new(Vec::new(), PageSize::BASE, TimeUnit::References).unwrap();
        references.iter().for_each(|reference| writer.write(*reference).unwrap());
        writer.into_inner()
    }

    #[test]
    fn byte_by_byte() {
        let bytes = written(&[
            Reference { page: Page(3), now: Ticks(1) },
            Reference { page: Page(1), now: Ticks(301) },
            Reference { page: Page(1), now: Ticks(300) },
        ]);
        assert_eq!(bytes[..16], *b"VELPAGES\x01\x0c\0\0\0\0\0\0");
        // 1, +3 → 6; 300 → 0xac 0x02, −2 → 3; a time that runs back is written as no change.
        assert_eq!(bytes[16..], [1, 6, 0xac, 2, 3, 0, 0]);
    }

    #[test]
    fn invalid_headers_are_refused() {
        let open = |bytes: &[u8]| PageTrace::open(bytes).unwrap_err().to_string();
        for (at, value) in [(0, b'X'), (8, 2), (9, 40), (9, 200), (10, 3), (15, 1)] {
            let mut bytes = written(&[]);
            bytes[at] = value;
            assert!(open(&bytes).starts_with("this is no page trace"), "byte {at} = {value}");
        }
        assert!(open(b"VELPAGES").contains("header"));
    }

    #[test]
    fn bad_records_are_reported_by_number_and_end_the_trace() {
        for (tail, why) in [
            (&[5u8][..], "is cut off"),
            (&[0x80], "is cut off"),
            (&[0xff; 12], "has a number of more than 64 bits"),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "lies beyond the end of time"),
        ] {
            let mut bytes = written(&[Reference { page: Page(9), now: Ticks(4) }]);
            bytes.extend(tail);
            let read: Vec<_> = PageTrace::open(&bytes[..]).unwrap().collect();
            assert_eq!(read.len(), 2, "{why}");
            match &read[1] {
                Err(error @ TraceError::Record { record: 2, offset: 18, why: said }) => {
                    assert_eq!((*said, error.is_cut_off()), (why, why == CUT_OFF));
                }
                other => panic!("{other:?} for {why}"),
            }
        }
    }

    proptest! {
        #[test]
        fn written_traces_are_read_back(steps in prop::collection::vec((any::<u64>(), 0u64..1 << 50), 0..200)) {
            let mut now = 0;
            let references: Vec<Reference> = steps
                .into_iter()
                .map(|(page, passed)| {
                    now += passed;
                    Reference { page: Page(page), now: Ticks(now) }
                })
                .collect();
            let bytes = written(&references);
            let read: Vec<Reference> = PageTrace::open(&bytes[..]).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read, references);
        }
    }
}
