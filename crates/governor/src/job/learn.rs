//! Learns a job's worth (its memory at the knee, beyond which more is not worth its cost) from a watch.
//!
//! ```text
//! Watcher::step ─▶ looks ─┬─ match the history ────▶ curve, S (cost of a fault) ─▶ knee ─▶ worth
//!                         └─ MISFITS in a row do not ─▶ new history; old worth kept until the next is known
//! ```
//!
//! Looks (counts of references) also show idle pages, so pages are reclaimed after a look ([`Job::settle`]).
//!
//! Source: Nishigaki 1981 (see `vellum_workset`), sections 2 and 3; dropping a history that looks do not
//! match is ours.

use super::{Job, RESTART_WAITS, bytes};
use crate::event::Event;
use crate::snapshot::State;
use crate::take::Means;
use std::time::{Duration, Instant};
use vellum_reference::{Options, SourceKind, Target, Watcher};
use vellum_workset::{Answer, Demand, knee};

/// A look that differs from the history by this part does not fit it; after this many in a row the job's
/// behaviour has changed.
const MISFIT: f64 = 0.5;
const MISFITS: u32 = 3;
/// A change of the worth by this part is reported.
const NEWS: f64 = 0.1;

impl Job {
    /// Looks at which pages are referenced, if that is due; when it is due next.
    pub(crate) fn watch(&mut self, now: Instant, events: &mut Vec<Event>) -> Option<Instant> {
        if self.state != State::Running {
            return None;
        }
        if self.watch.is_none() {
            if self.told.is_some() {
                return None;
            }
            self.begin_watch(events);
        }
        if now < self.watch_due {
            return Some(self.watch_due);
        }
        let watch = self.watch.as_mut()?;
        match watch.step() {
            Ok(step) => {
                self.watch_due = now + step.wait.unwrap_or(RESTART_WAITS[1]);
                self.learn(&step.events, events);
                Some(self.watch_due)
            }
            Err(error) => {
                self.unwatched(error.to_string(), events);
                None
            }
        }
    }

    /// Applies a step's events to the job's worth. A watch that has ended is noticed by the next survey.
    fn learn(&mut self, step: &[vellum_reference::Event], events: &mut Vec<Event>) {
        let mut looked = None;
        for event in step {
            match event {
                vellum_reference::Event::Looked { window, pages } => {
                    looked = Some(*window);
                    self.compare(*window, *pages);
                }
                vellum_reference::Event::Restarted => (self.judged, self.advised) = (None, None),
                _ => {}
            }
        }
        if self.misfits >= MISFITS {
            // It is in another phase now: the history of the last one would mislead. The worth stands until
            // this phase is known.
            (self.watch, self.misfits, self.from_start) = (None, 0, false);
            self.begin_watch(events);
        } else if looked.is_some() {
            self.judge(events);
        }
        self.settle(looked, events);
    }

    /// Compares the references in `window` with the history, and counts misfits.
    fn compare(&mut self, window: Duration, pages: u64) {
        let history = self.watch.as_ref().map(Watcher::history);
        let mean = history.filter(|history| history.samples() > 0).and_then(|history| history.mean());
        let Some(usual) = mean.and_then(|curve| curve.at(window.as_nanos() as f64)) else { return };
        let off = (pages as f64 - usual.pages).abs();
        self.misfits = if off > MISFIT * usual.pages.max(pages as f64) { self.misfits + 1 } else { 0 };
    }

    fn begin_watch(&mut self, events: &mut Vec<Event>) {
        let target = match &self.group {
            Some(group) => Target::cgroup(group),
            None => Target::process(self.root),
        };
        // A job whose pages are aged must be watched by the same source: both take the same bits. Other jobs
        // come and go, and loading the reader of page tables would take some 20 ms for each.
        let source = Some(match self.means {
            Means::Evict(..) => SourceKind::Generations,
            _ => SourceKind::AccessedBits,
        });
        let options = Options {
            delta: self.config.delta,
            alpha: self.config.alpha,
            source,
            idle_budget: self.idle_budget,
            // Nothing is lost by learning what a job is worth a little later.
            burst: Duration::ZERO,
            ..Options::default()
        };
        let watch = target.map_err(|error| error.to_string());
        match watch.and_then(|target| Watcher::new(target, options).map_err(|error| error.to_string())) {
            Ok(watch) => (self.watch, self.watch_due) = (Some(watch), Instant::now()),
            Err(why) => self.unwatched(why, events),
        }
    }

    fn unwatched(&mut self, why: String, events: &mut Vec<Event>) {
        (self.watch, self.judged, self.advised) = (None, None, None);
        self.told = Some((0.0, ""));
        events.push(Event::Unwatched { job: self.config.name.clone(), why });
    }

    fn judge(&mut self, events: &mut Vec<Event>) {
        let Some(watch) = &self.watch else { return };
        let Some(curve) = watch.curve() else { return };
        self.advised =
            watch.advised(&vellum_reference::Delay::given(Duration::from_secs_f64(self.delay.seconds())));
        let seen = watch.clock().as_nanos().max(1) as f64;
        let demand = Demand {
            criterion: self.config.criterion,
            delay: self.delay.seconds() * 1e9,
            cap: Some(self.config.cap),
            // Fewer faults than one in all the time watched cannot be distinguished from none.
            noise: 1.0 / seen,
            unavoidable: if self.from_start { watch.first_references() } else { 0.0 },
        };
        let answer = knee(&curve, &demand);
        let (choice, words) = (answer.choice(), answer.words());
        // A job that would still gain beyond the largest window seen is worth what it holds, at least.
        let gaining = matches!(answer, Answer::TakesAll { gaining: true, .. });
        self.judged = (!gaining).then_some((choice, words));
        let pages = choice.point.pages;
        let news =
            self.told.is_none_or(|(before, said)| said != words || (pages - before).abs() > NEWS * before);
        if news {
            self.emptied = None;
            self.told = Some((pages, words));
            events.push(Event::Knee {
                job: self.config.name.clone(),
                answer: words,
                window_seconds: choice.point.window / 1e9,
                bytes: bytes(pages).0,
                waiting: choice.waiting,
            });
        }
    }
}
