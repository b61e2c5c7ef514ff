//! Who goes through memory in order, and how far ahead it pays to be.
//!
//! A fault on the page behind the last one that some stream was given is that stream going on: twice as many
//! pages are brought each time, up to a limit. Any other fault may begin a stream and is given one page. The
//! stream that went on longest ago makes room.
//!
//! A stream that goes fast enough has clusters read before it gets there. Each has a *marker*, whose fault
//! says that the program has come so far ([`reader`](crate::reader)).

use crate::units::{AHEAD, PageNo};

/// Streams followed at a time: programs that merge read several.
const STREAMS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page that would go on.
    next: u32,
    /// Pages given last.
    given: u32,
    /// When it went on last.
    turn: u64,
    /// The pages, plus one, whose faults say that what was read ahead has been reached; 0 is none.
    markers: [u32; AHEAD],
}

const NONE: Stream = Stream { next: 0, given: 0, turn: 0, markers: [0; AHEAD] };

#[derive(Debug)]
pub(crate) struct Streams {
    streams: [Stream; STREAMS],
    turn: u64,
    jumping: bool,
}

impl Streams {
    pub(crate) const fn new() -> Streams {
        Streams { streams: [NONE; STREAMS], turn: 0, jumping: false }
    }

    /// Whether what was asked for last went on with nothing.
    pub(crate) fn is_jumping(&self) -> bool {
        self.jumping
    }

    /// How many pages from `page` on are worth bringing, at most `most`, and whose stream to tell.
    pub(crate) fn ask(&mut self, page: PageNo, most: u32) -> (u32, usize) {
        self.turn += 1;
        let going_on = self.streams.iter().position(|stream| stream.turn > 0 && stream.next == page.0);
        self.jumping = going_on.is_none();
        if let Some(which) = going_on {
            let wanted = (self.streams[which].given * 2).clamp(1, most.max(1));
            return (wanted, which);
        }
        let oldest = (0..STREAMS).min_by_key(|&which| self.streams[which].turn).unwrap_or(0);
        self.streams[oldest].given = 0;
        (1, oldest)
    }

    /// `given` pages from `page` on were brought for stream `which`.
    pub(crate) fn tell(&mut self, which: usize, page: PageNo, given: u32) {
        self.streams[which] = Stream { next: page.0 + given, given, turn: self.turn, ..NONE };
    }

    /// `given` pages from `page` on will have been read by the time that stream `which` gets there.
    pub(crate) fn mark(&mut self, which: usize, page: PageNo, given: u32) {
        let stream = &mut self.streams[which];
        if let Some(marker) = stream.markers.iter_mut().find(|marker| **marker == 0) {
            *marker = page.0 + 1;
        }
        (stream.next, stream.given, stream.turn) = (page.0 + given, given, self.turn);
    }

    /// Where stream `which` goes on behind all that it was given, unless it has been read so far ahead of
    /// that more would not pay.
    pub(crate) fn wants(&self, which: usize) -> Option<PageNo> {
        let stream = &self.streams[which];
        stream.markers.contains(&0).then_some(PageNo(stream.next))
    }

    /// Whether `page` is where some stream's marker is: then it is no more, and told is the stream.
    pub(crate) fn passed(&mut self, page: PageNo) -> Option<usize> {
        let which = self.streams.iter().position(|stream| stream.markers.contains(&(page.0 + 1)))?;
        self.turn += 1;
        self.jumping = false;
        let stream = &mut self.streams[which];
        stream.turn = self.turn;
        stream.markers.iter_mut().filter(|marker| **marker == page.0 + 1).for_each(|marker| *marker = 0);
        Some(which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_given_more_and_more_and_jumps_one_page() {
        let mut streams = Streams::new();
        let mut follow = |page: u32| {
            let (wanted, which) = streams.ask(PageNo(page), 8);
            streams.tell(which, PageNo(page), wanted);
            wanted
        };
        assert_eq!([10, 11, 13, 17, 25, 33].map(&mut follow), [1, 2, 4, 8, 8, 8]);
        assert_eq!([500, 900, 41].map(&mut follow), [1, 1, 8], "another's jumps do not end it");
        assert_eq!([501, 901].map(&mut follow), [2, 2]);
    }

    #[test]
    fn markers_are_passed_once() {
        let mut streams = Streams::new();
        let (_, which) = streams.ask(PageNo(10), 8);
        streams.tell(which, PageNo(10), 8);
        for cluster in 0..AHEAD as u32 {
            assert_eq!(streams.wants(which), Some(PageNo(18 + 8 * cluster)));
            streams.mark(which, PageNo(18 + 8 * cluster), 8);
        }
        assert_eq!(streams.wants(which), None, "far enough");
        assert_eq!(streams.passed(PageNo(19)), None);
        assert_eq!(streams.passed(PageNo(18)), Some(which));
        assert_eq!(streams.passed(PageNo(18)), None);
        let next = PageNo(18 + 8 * AHEAD as u32);
        assert_eq!(streams.wants(which), Some(next));
        assert_eq!(streams.ask(next, 8), (8, which), "what was not read ahead goes on as ever");
    }
}
