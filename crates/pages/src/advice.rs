//! A governor's advice on the size of this process's heap, received over a socket
//! ([`vellum_wire::advice`]).
//!
//! About once a second the background thread (`helper`) reports live and cached bytes, and receives new
//! targets. Cached frames beyond the target are returned to the kernel. Blocks in use are never taken. A
//! garbage-collected heap reads the target when it sets its budget ([`Pages::advised`]). After any failure
//! (no governor, a full socket, garbage) the process runs without advice and connects again later. Each
//! target carries its time of expiry.
//!
//! ```text
//! off ── VELLUM_ADVICE ──▶ unconnected ── connect ──▶ connected ──▶ trim to the target
//!                           ▲ └──── every RETRY_MS ─────┘    │
//!                           └─── closed · garbage ───────────┘
//! ```
//!
//! Invariants: nothing here blocks. The socket is open in the background thread's own descriptor table
//! only, so the program can neither see nor close it.

use crate::pages::Pages;
use crate::reason::Reason;
use crate::tag::Kind;
use crate::units::PAGE;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use vellum_sys::lock::Guarded;
use vellum_wire::Counter;
use vellum_wire::advice::{MESSAGE_BYTES, Report, Target, Urgency};

/// Between two reports.
pub(crate) const REPORT_MS: u64 = 1000;
/// Between two tries to connect.
const RETRY_MS: u64 = 10_000;
/// The longest path that a socket can have, with its zero.
const PATH_MAX: usize = 108;
/// The most targets taken in one go: only the last counts.
const TARGETS_MAX: usize = 16;

const NOTHING: u64 = u64::MAX;

/// A governor's advice: which socket it comes from, and the target in force.
pub(crate) struct Advised {
    is_on: AtomicBool,
    /// The bytes that the process's live and cached memory may come to, and until when that holds.
    bytes: AtomicU64,
    until_ms: AtomicU64,
    path: Guarded<([u8; PATH_MAX], usize)>,
}

impl Advised {
    pub(crate) const fn new() -> Advised {
        Advised {
            is_on: AtomicBool::new(false),
            bytes: AtomicU64::new(NOTHING),
            until_ms: AtomicU64::new(0),
            path: Guarded::new(([0; PATH_MAX], 0)),
        }
    }

    /// In a forked child, where the lock's holder does not exist. The path is written once, before any fork.
    pub(crate) fn reset_after_fork(&self) {
        self.path.raw().reset_after_fork();
        self.bytes.store(NOTHING, Ordering::Relaxed);
    }

    /// Bytes that live and cached memory may come to, by a target that is in force.
    pub(crate) fn bytes(&self, now_ms: u64) -> Option<u64> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes != NOTHING && now_ms <= self.until_ms.load(Ordering::Relaxed)).then_some(bytes)
    }

    fn set(&self, received: Option<(Target, u64)>) {
        if let Some((_, until_ms)) = received {
            self.until_ms.store(until_ms, Ordering::Relaxed);
        }
        self.bytes.store(received.map_or(NOTHING, |(target, _)| target.heap), Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn connect(&self) -> Option<OwnedFd> {
        let stored = *self.path.lock();
        let address = SocketAddrUnix::new(stored.0.get(..stored.1)?).ok()?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
        rustix::net::connect(&socket, &address).ok().map(|()| socket)
    }
}

/// The helper's end of the conversation.
#[derive(Debug, Default)]
pub(crate) struct Client {
    socket: Option<OwnedFd>,
    next_ms: u64,
    received: Option<(Target, u64)>,
}

impl Pages {
    /// Follows the governor whose advice socket is at `path`, of at most 107 bytes; false if it is longer.
    pub fn follow_advice(&self, path: &[u8]) -> bool {
        if path.is_empty() || path.len() >= PATH_MAX {
            return false;
        }
        {
            let mut stored = self.advised.path.lock();
            stored.0[..path.len()].copy_from_slice(path);
            stored.1 = path.len();
        }
        self.advised.is_on.store(true, Ordering::Release);
        self.wake_helper();
        true
    }

    /// Gives cached memory back until live and cached memory together are within `bytes`.
    pub(crate) fn trim_to(&self, bytes: u64) {
        let (live, cached) = self.live_and_cached();
        let over = (live + cached).saturating_sub(bytes).min(cached);
        if over >= PAGE as u64 && self.discard_mode().follows_pressure() {
            self.flush_some(Kind::Warm, over / PAGE as u64, Reason::Pressure);
        }
    }
}

impl Client {
    /// Reports, receives and follows, if it is time to.
    pub(crate) fn attend(&mut self, pages: &Pages, now_ms: u64) {
        if !pages.advised.is_on() || now_ms < self.next_ms {
            return;
        }
        self.next_ms = now_ms + REPORT_MS;
        if self.socket.is_none() {
            self.socket = pages.advised.connect();
        }
        let Some(socket) = &self.socket else {
            self.next_ms = now_ms + RETRY_MS;
            return;
        };
        let (live, cached) = pages.live_and_cached();
        let slot = pages.slot();
        let report = Report {
            live,
            cached,
            allocated: slot.get(Counter::BytesOut),
            collected_ns: slot.get(Counter::GcPauseCpuNs),
            collections: slot.get(Counter::GcCollections),
        };
        let sent = rustix::net::send(socket, &report.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        let reachable = matches!(sent, Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS));
        if !(reachable && receive(socket, now_ms, &mut self.received)) {
            (self.socket, self.received) = (None, None);
            pages.advised.set(None);
            self.next_ms = now_ms + RETRY_MS;
            return;
        }
        pages.advised.set(self.received);
        if let Some((target, until)) = self.received {
            match target.urgency {
                _ if now_ms > until => self.received = None,
                Urgency::None => {}
                Urgency::Soon => pages.trim_to(target.heap),
                Urgency::Now => pages.trim_to(0),
            }
        }
    }
}

/// Receives targets, of which the last one counts. False if the governor is gone, or its messages are none.
fn receive(socket: &OwnedFd, now_ms: u64, received: &mut Option<(Target, u64)>) -> bool {
    // Longer than any message, so that one too long is seen to be.
    let mut packet = [0u8; MESSAGE_BYTES + 1];
    for _ in 0..TARGETS_MAX {
        match rustix::net::recv(socket, &mut packet[..], RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => match packet.get(..bytes).and_then(Target::decode) {
                Some(target) => *received = Some((target, now_ms + u64::from(target.valid_ms))),
                None => return false,
            },
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use std::boxed::Box;
    use std::os::unix::ffi::OsStrExt;

    /// A governor of one.
    fn listen(path: &std::path::Path) -> OwnedFd {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        rustix::net::listen(&socket, 4).unwrap();
        socket
    }

    fn tell(peer: &OwnedFd, message: &[u8]) {
        rustix::net::send(peer, message, SendFlags::NOSIGNAL).unwrap();
    }

    fn told(peer: &OwnedFd) -> Report {
        let mut packet = [0; 128];
        let (_, bytes) = rustix::net::recv(peer, &mut packet[..], RecvFlags::empty()).unwrap();
        Report::decode(&packet[..bytes]).expect("a report")
    }

    #[test]
    fn targets_are_kept_to_and_a_governor_that_is_gone_is_gone_on_without() {
        let folder = std::env::temp_dir().join(std::format!("vellum-advice-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("s");
        let pages: &Pages = Box::leak(Box::new(Pages::new()));
        assert!(!pages.follow_advice(&[b'x'; PATH_MAX]) && !pages.follow_advice(b""));
        let mut client = Client::default();
        client.attend(pages, 0);
        assert!(client.socket.is_none(), "nobody was named");

        let listening = listen(&path);
        assert!(pages.follow_advice(path.as_os_str().as_bytes()));
        let request = Request { bytes: 4 << 20, align: PAGE, zero: false };
        let [kept, freed] = [pages.alloc(request).unwrap(), pages.alloc(request).unwrap()];
        // SAFETY: blocks of this test alone, one of which is written and given back.
        unsafe {
            freed.addr.write_bytes(1, freed.bytes);
            pages.free(freed.addr).unwrap();
        }
        client.attend(pages, 1);
        let peer = rustix::net::accept(&listening).unwrap();
        let report = told(&peer);
        assert!(
            report.live >= 4 << 20 && report.cached >= 4 << 20 && report.allocated >= 8 << 20,
            "{report:?}"
        );

        let target = Target { heap: report.live + (1 << 20), valid_ms: 5000, ..Target::default() };
        tell(&peer, &target.encode());
        client.attend(pages, 1 + REPORT_MS);
        assert!(told(&peer).cached >= 4 << 20, "nothing is short: nothing goes");
        let advised = |now_ms| pages.advised.bytes(now_ms);
        assert_eq!(advised(1 + REPORT_MS), Some(target.heap), "a heap may ask what it may come to");
        assert_eq!(advised(2 + REPORT_MS + u64::from(target.valid_ms)), None, "for as long as it was said");
        tell(&peer, &Target { urgency: Urgency::Soon, ..target }.encode());
        client.attend(pages, 1 + 2 * REPORT_MS);
        told(&peer);
        let (live, cached) = pages.live_and_cached();
        assert!(live + cached <= target.heap && cached > 0, "{live} and {cached} of {}", target.heap);
        tell(&peer, &Target { urgency: Urgency::Now, ..target }.encode());
        client.attend(pages, 1 + 3 * REPORT_MS);
        told(&peer);
        assert_eq!(pages.live_and_cached(), (live, 0));

        // Garbage, and then nobody: no target holds any more, and nothing is tried again too soon.
        tell(&peer, b"nonsense");
        client.attend(pages, 1 + 4 * REPORT_MS);
        assert!(client.socket.is_none() && client.received.is_none() && advised(0).is_none());
        drop((peer, listening));
        client.attend(pages, 1 + 5 * REPORT_MS);
        client.attend(pages, 1 + 5 * REPORT_MS + RETRY_MS);
        assert!(client.socket.is_none());
        std::fs::remove_dir_all(&folder).unwrap();
        // SAFETY: a block of this test alone.
        unsafe { pages.free(kept.addr).unwrap() };
    }
}
