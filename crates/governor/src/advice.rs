//! The advice socket, at which language runtimes report the sizes of their heaps and get target sizes. The
//! protocol is in [`vellum_wire::advice`].
//!
//! In each period of the governor (the time between two decisions), without blocking:
//!
//! ```text
//! accept ─▶ find the peer's job ─▶ read reports ─▶ share the job's target among its heaps ─▶ send
//! ```
//!
//! A peer (a connected process, its pid given by `SO_PEERCRED`) is disconnected if it belongs to no job
//! for [`STRANGER_PERIODS`], sends anything but reports, or does not read its targets.
//!
//! A job's target is the memory that the policy gives the job. The part of the target that exceeds the
//! job's memory outside of heaps is divided among its heaps in proportion to their live memory.

use crate::place::{Listening, Place, PlaceError};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::time::Duration;
use vellum_kernel::{Bytes, Pid};
use vellum_wire::advice::{MESSAGE_BYTES, Report, Target, Urgency};

pub(crate) const PEERS_MAX: usize = 1024;
/// For how many periods a peer may be of no job: it may have been started just now.
pub(crate) const STRANGER_PERIODS: u32 = 3;
/// For how many periods a peer may leave its packets unread.
pub(crate) const UNREAD_PERIODS: u32 = 5;
const PACKETS_MAX: usize = 32;
/// For how many periods a target holds.
pub(crate) const VALID_PERIODS: u32 = 5;

#[derive(Debug, Clone)]
pub(crate) struct JobAdvice {
    pub(crate) members: HashSet<Pid>,
    pub(crate) target: Bytes,
    pub(crate) resident: Bytes,
    pub(crate) urgency: Urgency,
    pub(crate) valid: Duration,
}

#[derive(Debug)]
struct Peer {
    socket: OwnedFd,
    pid: Pid,
    job: Option<usize>,
    strange: u32,
    unread: u32,
    report: Option<Report>,
}

#[derive(Debug)]
pub(crate) struct AdviceServer {
    listening: Listening,
    peers: Vec<Peer>,
}

impl AdviceServer {
    /// A socket in `place`; other users' processes may connect if `others`, and must be of a job all the
    /// same.
    pub(crate) fn start(place: &Place, others: bool) -> Result<AdviceServer, PlaceError> {
        let path = place.advice();
        let socket = place.listen(&path, SocketType::SEQPACKET, if others { 0o666 } else { 0o600 })?;
        Ok(AdviceServer { listening: Listening { socket, path }, peers: Vec::new() })
    }

    /// Reads the reports of all peers and sends all targets. Returns how many peers each job has.
    pub(crate) fn publish(&mut self, jobs: impl Iterator<Item = JobAdvice>) -> Vec<usize> {
        let jobs: Vec<JobAdvice> = jobs.collect();
        self.accept();
        self.peers.retain_mut(|peer| peer.hear() && peer.belongs(&jobs));
        let mut clients = vec![0; jobs.len()];
        // Live and cached bytes of each job's heaps.
        let mut heaps: HashMap<usize, (u64, u64)> = HashMap::new();
        for peer in &self.peers {
            if let (Some(job), Some(report)) = (peer.job, peer.report) {
                clients[job] += 1;
                let (live, all) = heaps.entry(job).or_default();
                *live = live.saturating_add(report.live);
                *all = all.saturating_add(report.live.saturating_add(report.cached));
            }
        }
        self.peers.retain_mut(|peer| {
            let (Some(at), Some(report)) = (peer.job, peer.report) else { return true };
            let (job, (live, all)) = (&jobs[at], heaps[&at]);
            peer.tell(&Target {
                heap: heap(job, report, live, all, clients[at]),
                job: job.target.0,
                job_holds: job.resident.0,
                urgency: job.urgency,
                valid_ms: u32::try_from(job.valid.as_millis()).unwrap_or(u32::MAX),
            })
        });
        clients
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.peers.len() < PEERS_MAX {
            let Ok(socket) = rustix::net::accept_with(&self.listening.socket, flags) else { return };
            if let Ok(who) = rustix::net::sockopt::socket_peercred(&socket) {
                let pid = Pid(who.pid.as_raw_nonzero().get());
                self.peers.push(Peer { socket, pid, job: None, strange: 0, unread: 0, report: None });
            }
        }
    }
}

impl Peer {
    /// Reads its reports. False if it is gone, or has sent anything else.
    fn hear(&mut self) -> bool {
        // Longer than any message, so that one too long is seen to be.
        let mut packet = [0u8; MESSAGE_BYTES + 1];
        for _ in 0..PACKETS_MAX {
            match rustix::net::recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return false,
                Ok((_, bytes)) => match packet.get(..bytes).and_then(Report::decode) {
                    Some(report) => self.report = Some(report),
                    None => return false,
                },
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Finds its job. False if it has had none for too long.
    fn belongs(&mut self, jobs: &[JobAdvice]) -> bool {
        self.job = jobs.iter().position(|job| job.members.contains(&self.pid));
        self.strange = if self.job.is_some() { 0 } else { self.strange + 1 };
        self.strange < STRANGER_PERIODS
    }

    /// Sends the target. False if it is gone, or has not read for too long.
    fn tell(&mut self, target: &Target) -> bool {
        match rustix::net::send(&self.socket, &target.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) => self.unread = 0,
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => self.unread += 1,
            Err(_) => return false,
        }
        self.unread < UNREAD_PERIODS
    }
}

/// The target of one heap of a job: its part, by live memory, of the job's target less the job's memory
/// outside of heaps.
fn heap(job: &JobAdvice, report: Report, live: u64, all: u64, clients: usize) -> u64 {
    let outside = job.resident.0.saturating_sub(all);
    let room = job.target.0.saturating_sub(outside);
    match live {
        0 => room / clients.max(1) as u64,
        live => (u128::from(room) * u128::from(report.live) / u128::from(live)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix};

    struct Set {
        server: AdviceServer,
        place: Place,
        _folder: tempfile::TempDir,
    }

    fn set() -> Set {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::make(Some(&folder.path().join("v"))).unwrap();
        Set { server: AdviceServer::start(&place, false).unwrap(), place, _folder: folder }
    }

    impl Set {
        fn client(&self) -> OwnedFd {
            let socket = rustix::net::socket_with(
                AddressFamily::UNIX,
                SocketType::SEQPACKET,
                SocketFlags::CLOEXEC,
                None,
            )
            .unwrap();
            rustix::net::connect(&socket, &SocketAddrUnix::new(self.place.advice()).unwrap()).unwrap();
            socket
        }

        fn publish(&mut self, members: &[Pid]) -> Vec<usize> {
            let job = JobAdvice {
                members: members.iter().copied().collect(),
                target: Bytes(1000),
                resident: Bytes(700),
                urgency: Urgency::Soon,
                valid: Duration::from_secs(5),
            };
            self.server.publish([job].into_iter())
        }
    }

    fn report(socket: &OwnedFd, live: u64, cached: u64) {
        let message = Report { live, cached, ..Report::default() }.encode();
        rustix::net::send(socket, &message, SendFlags::NOSIGNAL).unwrap();
    }

    fn heard(socket: &OwnedFd) -> Option<Target> {
        let mut packet = [0; 128];
        match rustix::net::recv(socket, &mut packet[..], RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => Target::decode(&packet[..bytes]),
            Err(_) => None,
        }
    }

    #[test]
    fn heaps_share_the_jobs_target_by_what_is_live() {
        let mut set = set();
        let (one, two) = (set.client(), set.client());
        report(&one, 300, 100);
        report(&two, 100, 0);
        assert_eq!(set.publish(&[Pid::me()]), [2]);
        // By hand: 700 − 500 are outside of heaps, so that heaps may be 800 together.
        let target = heard(&one).unwrap();
        assert_eq!((target.heap, target.job, target.job_holds), (600, 1000, 700));
        assert_eq!((target.urgency, target.valid_ms), (Urgency::Soon, 5000));
        assert_eq!(heard(&two).unwrap().heap, 200);
    }

    #[test]
    fn garbage_ends_a_connection_and_harms_no_other() {
        let mut set = set();
        let good = set.client();
        report(&good, 1, 0);
        for garbage in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; MESSAGE_BYTES], &[255; 4000], &Target::default().encode()]
        {
            let bad = set.client();
            rustix::net::send(&bad, garbage, SendFlags::NOSIGNAL).unwrap();
            assert_eq!(set.publish(&[Pid::me()]), [1]);
            assert_eq!(heard(&bad), None);
            assert_eq!(set.server.peers.len(), 1);
        }
        assert!(heard(&good).is_some());
    }

    #[test]
    fn who_does_not_read_and_who_is_of_no_job_are_shut_out() {
        let mut set = set();
        let deaf = set.client();
        report(&deaf, 1, 0);
        let mut periods = 0;
        while !set.server.peers.is_empty() || periods == 0 {
            set.publish(&[Pid::me()]);
            periods += 1;
            assert!(periods < 10_000, "it is fed for ever");
        }
        let stranger = set.client();
        report(&stranger, 1, 0);
        for _ in 0..STRANGER_PERIODS {
            assert_eq!(set.publish(&[Pid(1)]), [0]);
        }
        assert!(set.server.peers.is_empty() && heard(&stranger).is_none());
    }

    #[test]
    fn who_says_nothing_hears_nothing_and_a_flood_takes_no_more_than_its_part() {
        let mut set = set();
        let silent = set.client();
        let flood = set.client();
        rustix::io::ioctl_fionbio(&flood, true).unwrap();
        let message = Report::default().encode();
        while rustix::net::send(&flood, &message, SendFlags::NOSIGNAL).is_ok() {}
        assert_eq!(set.publish(&[Pid::me()]), [1]);
        assert!(heard(&silent).is_none() && heard(&flood).is_some());
    }
}
