//! The state socket, which `vellum top` reads: each client gets the governor's state in every period, as a
//! line of JSON, until one side closes the connection.
//!
//! Only the governor's own user (and root) may connect. Data sent by a client are ignored. A slow client gets
//! only whole lines: a line sent in part is completed first. A client that makes no progress for
//! [`STUCK_PERIODS`] is disconnected.

use crate::place::{Listening, Place, PlaceError, state_socket};
use crate::snapshot::Snapshot;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

pub(crate) const PEERS_MAX: usize = 64;
/// For how many periods a peer may read nothing.
pub(crate) const STUCK_PERIODS: u32 = 10;

#[derive(Debug)]
struct Peer {
    socket: OwnedFd,
    /// The unsent rest of a line.
    left: Vec<u8>,
    stuck: u32,
}

#[derive(Debug)]
pub(crate) struct StateServer {
    listening: Listening,
    peers: Vec<Peer>,
}

impl StateServer {
    pub(crate) fn start(place: &Place) -> Result<StateServer, PlaceError> {
        let path = state_socket(&place.path);
        let socket = place.listen(&path, SocketType::STREAM, 0o600)?;
        Ok(StateServer { listening: Listening { socket, path }, peers: Vec::new() })
    }

    pub(crate) fn publish(&mut self, snapshot: &Snapshot) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.peers.len() < PEERS_MAX {
            let Ok(socket) = rustix::net::accept_with(&self.listening.socket, flags) else { break };
            self.peers.push(Peer { socket, left: Vec::new(), stuck: 0 });
        }
        if self.peers.is_empty() {
            return;
        }
        // Plain structs of numbers and strings: there is nothing that could fail to serialise.
        let mut line = serde_json::to_vec(snapshot).unwrap_or_default();
        line.push(b'\n');
        self.peers.retain_mut(|peer| {
            if peer.left.is_empty() {
                peer.left.clone_from(&line);
            }
            peer.push()
        });
    }
}

impl Peer {
    /// Sends as much as the peer accepts. False if it is gone or stuck.
    fn push(&mut self) -> bool {
        while !self.left.is_empty() {
            match rustix::net::send(&self.socket, &self.left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.left.drain(..sent);
                    self.stuck = 0;
                }
                Err(Errno::AGAIN) => {
                    self.stuck += 1;
                    return self.stuck < STUCK_PERIODS;
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn readers_get_whole_lines_and_others_are_shut_out() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::make(Some(&folder.path().join("v"))).unwrap();
        let mut server = StateServer::start(&place).unwrap();
        let connect = || UnixStream::connect(state_socket(&place.path)).unwrap();
        let job = crate::snapshot::JobSnapshot { name: "x".repeat(4000), ..Default::default() };
        let snapshot = Snapshot { jobs: vec![job; 20], ..Snapshot::default() };
        let (mut reader, deaf, gone) = (BufReader::new(connect()), connect(), connect());
        // Data sent by a peer are ignored.
        reader.get_mut().write_all(b"garbage\0\xff").unwrap();
        drop(gone);
        let mut periods = 0;
        while server.peers.len() != 1 {
            server.publish(&snapshot);
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(serde_json::from_str::<Snapshot>(&line).unwrap(), snapshot);
            periods += 1;
            assert!(periods < 1000, "{} peers are left", server.peers.len());
        }
        drop(deaf);
    }
}
