//! What to replace.
//!
//! A processor's accessed bits cannot be read without privilege, so the pager finds out what is referenced in
//! the oldest way there is: it takes a page from its address but keeps the frame (the page is *held*), and
//! sees whether it is asked for. A policy says which page to look at next ([`Policy::probe`]) and which held
//! page to give up ([`Policy::victim`]); it is notified of whatever happens to a page with a frame.
//!
//! ```text
//!             arrived                 probe              victim
//!   (no frame) ─────▶ mapped ─────────────────▶ held ─────────────▶ (no frame)
//!                        ◀───────────────────────┘
//!                              referenced
//! ```
//!
//! Policies are pure: no page is touched here, time is a number handed in, and what they keep of each page is
//! in one array of [`Link`]s. Three are there: [`Clock`], [`Window`], and [`DiscardableFirst`] around either.
//!
//! Departure from the source: Mach let the pager only carry out what the kernel's LRU had chosen (section 7
//! calls this "unfortunate"); here the choice is the pager's, and "any discardable page should be chosen for
//! replacement before any non-discardable page".

mod clock;
mod discardable;
mod list;
mod window;

pub use clock::Clock;
pub use discardable::DiscardableFirst;
pub use list::Link;
pub use window::Window;

use crate::units::PageNo;

/// A replacement policy. Every page with a frame is in its care exactly once, mapped or held.
pub trait Policy {
    /// `page` has a frame and is mapped: it was missing, and referenced at `now`.
    fn arrived(&mut self, links: &mut [Link], page: PageNo, now: u64);

    /// `page`, held so far, was referenced and is mapped again.
    fn referenced(&mut self, links: &mut [Link], page: PageNo, now: u64);

    /// The mapped page to be looked at next, which the policy takes for held from now on. `None` if none is
    /// mapped.
    fn probe(&mut self, links: &mut [Link], now: u64) -> Option<PageNo>;

    /// `page` could not be held after all: it stays mapped, and was not seen to be referenced.
    fn stays(&mut self, links: &mut [Link], page: PageNo);

    /// The held page to give up next, which leaves the policy's care. `None` if none is held.
    fn victim(&mut self, links: &mut [Link], now: u64) -> Option<PageNo>;

    /// `page`, which left by [`Policy::victim`], could not be given up: it is held on.
    fn spared(&mut self, links: &mut [Link], page: PageNo);

    /// `page` has lost its frame by other ways than [`Policy::victim`].
    fn gone(&mut self, links: &mut [Link], page: PageNo);

    /// The contents of `page`, mapped or held, are not needed any more.
    fn discardable(&mut self, links: &mut [Link], page: PageNo) {
        let _ = (links, page);
    }

    /// How many pages are held.
    fn held(&self) -> u32;

    /// How many pages are mapped.
    fn mapped(&self) -> u32;

    /// Whether times mean anything to the policy; if not it may get 0.
    fn goes_by_time(&self) -> bool {
        false
    }

    /// Whether mapped pages ought to be looked at by `now` although no frame is wanted.
    fn is_due(&self, links: &[Link], now: u64) -> bool {
        let _ = (links, now);
        false
    }
}

/// Which policy a pager uses for pages whose contents are needed; discardable ones always go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// [`Clock`].
    #[default]
    Clock,
    /// [`Window`], of this many nanoseconds of the process's CPU time.
    Window(u64),
}

/// A policy chosen when the pager starts.
#[derive(Debug)]
pub(crate) enum Chosen {
    Clock(DiscardableFirst<Clock>),
    Window(DiscardableFirst<Window>),
}

impl Chosen {
    pub(crate) const fn new(choice: Choice) -> Chosen {
        match choice {
            Choice::Clock => Chosen::Clock(DiscardableFirst::new(Clock::new())),
            Choice::Window(ns) => Chosen::Window(DiscardableFirst::new(Window::new(ns))),
        }
    }
}

macro_rules! either {
    ($chosen:expr, $policy:ident => $call:expr) => {
        match $chosen {
            Chosen::Clock($policy) => $call,
            Chosen::Window($policy) => $call,
        }
    };
}

impl Policy for Chosen {
    fn arrived(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        either!(self, policy => policy.arrived(links, page, now));
    }
    fn referenced(&mut self, links: &mut [Link], page: PageNo, now: u64) {
        either!(self, policy => policy.referenced(links, page, now));
    }
    fn probe(&mut self, links: &mut [Link], now: u64) -> Option<PageNo> {
        either!(self, policy => policy.probe(links, now))
    }
    fn stays(&mut self, links: &mut [Link], page: PageNo) {
        either!(self, policy => policy.stays(links, page));
    }
    fn victim(&mut self, links: &mut [Link], now: u64) -> Option<PageNo> {
        either!(self, policy => policy.victim(links, now))
    }
    fn spared(&mut self, links: &mut [Link], page: PageNo) {
        either!(self, policy => policy.spared(links, page));
    }
    fn gone(&mut self, links: &mut [Link], page: PageNo) {
        either!(self, policy => policy.gone(links, page));
    }
    fn discardable(&mut self, links: &mut [Link], page: PageNo) {
        either!(self, policy => policy.discardable(links, page));
    }
    fn held(&self) -> u32 {
        either!(self, policy => policy.held())
    }
    fn mapped(&self) -> u32 {
        either!(self, policy => policy.mapped())
    }
    fn goes_by_time(&self) -> bool {
        either!(self, policy => policy.goes_by_time())
    }
    fn is_due(&self, links: &[Link], now: u64) -> bool {
        either!(self, policy => policy.is_due(links, now))
    }
}
