//! The paging device: requests are served one at a time, first come, first served.

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

#[derive(Debug, Default)]
pub(super) struct Device {
    /// The request in service, with the time of its end.
    served: Option<(u64, Request)>,
    waiting: VecDeque<(Request, u64)>,
    /// Total service time, for the load.
    pub(super) busy: u64,
}

impl Device {
    pub(super) fn ask(&mut self, now: u64, request: Request, service: u64) {
        if self.served.is_none() {
            self.served = Some((now + service, request));
            self.busy += service;
        } else {
            self.waiting.push_back((request, service));
        }
    }

    /// The time when the next request is done.
    pub(super) fn next(&self) -> Option<u64> {
        self.served.map(|(done, _)| done)
    }

    /// The next request done by `now`, with its time; the next waiting request is then served.
    pub(super) fn done(&mut self, now: u64) -> Option<(u64, Request)> {
        let (done, request) = self.served.filter(|(done, _)| *done <= now)?;
        self.served = self.waiting.pop_front().map(|(next, service)| {
            self.busy += service;
            (done + service, next)
        });
        Some((done, request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_served_in_order_without_gaps() {
        let mut device = Device::default();
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
}
