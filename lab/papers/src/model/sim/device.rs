//! The paging device: requests are served first come, first served, by one server or several.

use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A page; the job waits for it.
    Page {
        job: usize,
        /// The time of the request.
        at: u64,
        /// The job's activation that made the request.
        activation: u64,
    },
    /// All pages of a job that is activated, as a block; the job waits for them.
    BlockIn { job: usize, activation: u64 },
    /// All pages of a job that is suspended, as a block; no job waits.
    BlockOut,
}

#[derive(Debug)]
pub(super) struct Device {
    /// Each server's request with the time of its end; `None` for free servers.
    servers: Vec<Option<(u64, Request)>>,
    waiting: VecDeque<(Request, u64)>,
    /// Total service time, for the load.
    pub(super) busy: u64,
}

impl Device {
    pub(super) fn new(servers: usize) -> Self {
        Self { servers: vec![None; servers.max(1)], waiting: VecDeque::new(), busy: 0 }
    }

    pub(super) fn ask(&mut self, now: u64, request: Request, service: u64) {
        match self.servers.iter_mut().find(|server| server.is_none()) {
            Some(server) => {
                *server = Some((now + service, request));
                self.busy += service;
            }
            None => self.waiting.push_back((request, service)),
        }
    }

    /// The time when the next request is done.
    pub(super) fn next(&self) -> Option<u64> {
        self.servers.iter().flatten().map(|(done, _)| *done).min()
    }

    /// The next request done by `now`, with its time; its server then serves the next waiting request.
    pub(super) fn done(&mut self, now: u64) -> Option<(u64, Request)> {
        let due = |server: &&mut Option<(u64, Request)>| server.is_some_and(|(done, _)| done <= now);
        let server = self.servers.iter_mut().filter(due).min_by_key(|server| server.map(|(done, _)| done))?;
        let (done, request) = server.take()?;
        if let Some((next, service)) = self.waiting.pop_front() {
            *server = Some((done + service, next));
            self.busy += service;
        }
        Some((done, request))
    }

    pub(super) fn servers(&self) -> usize {
        self.servers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_served_in_order_without_gaps() {
        let mut device = Device::new(1);
        let page = |job| Request::Page { job, at: 0, activation: 0 };
        device.ask(0, page(1), 10);
        device.ask(3, page(2), 10);
        device.ask(25, page(3), 10);
        assert_eq!((device.next(), device.done(9)), (Some(10), None));
        assert_eq!(device.done(100), Some((10, page(1))));
        assert_eq!(device.done(100), Some((20, page(2))));
        // The third request was queued before the device was read, so it starts at 20, when the second ends.
        assert_eq!(device.done(100), Some((30, page(3))));
        assert_eq!((device.done(100), device.busy), (None, 30));
    }

    #[test]
    fn two_servers_work_side_by_side() {
        let mut device = Device::new(2);
        device.ask(0, Request::BlockOut, 50);
        device.ask(0, Request::BlockIn { job: 1, activation: 3 }, 10);
        assert_eq!(device.done(50), Some((10, Request::BlockIn { job: 1, activation: 3 })));
        assert_eq!(device.done(50), Some((50, Request::BlockOut)));
    }
}
