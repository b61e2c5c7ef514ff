//! A connection with bounds on time and size, as the peer may be silent or slow, or send without end. TLS may
//! run over it.
//!
//! Invariant: no call waits past its bound. Bounds count from the start of the connection, so slow bytes do
//! not extend them.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time for everything that a peer sends, a handshake included, and the longest wait while it reads
/// nothing.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(2);
/// The time for a whole connection: Prometheus' usual one for a scrape.
pub(crate) const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// A connection, and since when.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    began: Instant,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Peer {
        Peer { stream, began: Instant::now() }
    }

    /// The byte that is read next; `None` if the peer has closed.
    pub(crate) fn first(&mut self) -> io::Result<Option<u8>> {
        self.stream.set_read_timeout(Some(self.left(REQUEST_TIME)?))?;
        let mut byte = [0];
        Ok((self.stream.peek(&mut byte)? > 0).then_some(byte[0]))
    }

    fn left(&self, bound: Duration) -> io::Result<Duration> {
        let left = bound.saturating_sub(self.began.elapsed());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Peer {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left(REQUEST_TIME)?))?;
        self.stream.read(to)
    }
}

impl Write for Peer {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let left = self.left(CONNECTION_TIME)?.min(REQUEST_TIME);
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
