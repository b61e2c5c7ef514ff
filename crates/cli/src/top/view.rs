//! The user's choices in `vellum top`: a job, a column to sort by, a pause. `drawing` draws them.
//!
//! # Invariants
//! * If the table has any jobs, the chosen job is in it. The job is identified by its name, because its row
//!   changes with the order.

use super::history::History;
use super::press::Press;
use crate::jobs_table::{Column, Key};
use std::cmp::Ordering;
use vellum_governor::{JobSnapshot, Snapshot};

/// The number of jobs that page up and page down move.
const PAGE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: Column,
    pub(super) falls: bool,
}

#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) state: Snapshot,
    /// The newest state, while an older one is shown.
    held_back: Option<Snapshot>,
    pub(super) history: History,
    chosen: String,
    /// The order of the jobs; `None`: the order of the governor's table.
    pub(super) order: Option<Order>,
    pub(super) paused: bool,
}

impl View {
    pub(super) fn learn(&mut self, state: Snapshot) {
        self.history.learn(&state);
        if self.paused {
            self.held_back = Some(state);
        } else {
            self.state = state;
        }
        self.choose_by(0);
    }

    pub(super) fn jobs(&self) -> Vec<&JobSnapshot> {
        let mut jobs: Vec<&JobSnapshot> = self.state.jobs.iter().collect();
        if let Some(Order { column, falls }) = self.order {
            jobs.sort_by(|a, b| by(&column.key(a), &column.key(b), falls));
        }
        jobs
    }

    /// The index of the chosen job in [`View::jobs`].
    pub(super) fn chosen(&self) -> Option<usize> {
        self.jobs().iter().position(|job| job.name == self.chosen)
    }

    /// Handles a key press. False if it ends the command.
    pub(super) fn obey(&mut self, press: Press) -> bool {
        match press {
            Press::Interrupt | Press::Escape | Press::Char('q' | 'Q') => return false,
            Press::Up | Press::Char('k') => self.choose_by(-1),
            Press::Down | Press::Char('j') => self.choose_by(1),
            Press::PageUp => self.choose_by(-(PAGE as isize)),
            Press::PageDown => self.choose_by(PAGE as isize),
            Press::Home => self.choose_by(isize::MIN),
            Press::End => self.choose_by(isize::MAX),
            Press::Left | Press::Char('<') => self.sort_beside(-1),
            Press::Right | Press::Char('>') => self.sort_beside(1),
            Press::Char('r') => {
                self.order = self.order.map(|order| Order { falls: !order.falls, ..order });
            }
            Press::Char('p' | ' ') => self.pause(),
            _ => {}
        }
        true
    }

    fn choose_by(&mut self, steps: isize) {
        let jobs = self.jobs();
        let last = jobs.len().saturating_sub(1);
        let at = self.chosen().unwrap_or(0).saturating_add_signed(steps).min(last);
        self.chosen = jobs.get(at).map_or_else(String::new, |job| job.name.clone());
    }

    /// Sorts by the next column; beyond the last and the first comes the order of the governor's table.
    fn sort_beside(&mut self, step: isize) {
        let columns = Column::ALL.len();
        let at = self.order.and_then(|order| Column::ALL.iter().position(|column| *column == order.column));
        // One place more than there are columns, for no order.
        let at =
            at.map_or(0, |at| at + 1).wrapping_add_signed(step).wrapping_add(columns + 1) % (columns + 1);
        // Numbers begin with the largest, as users look for it.
        let column = at.checked_sub(1).map(|at| Column::ALL[at]);
        self.order = column.map(|column| Order { column, falls: !column.is_text() });
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if let Some(state) = self.held_back.take().filter(|_| !self.paused) {
            self.state = state;
            self.choose_by(0);
        }
    }
}

/// Compares two keys. Unknown values come last in both directions.
fn by(a: &Key, b: &Key, falls: bool) -> Ordering {
    let (a_unknown, b_unknown) = (*a == Key::Unknown, *b == Key::Unknown);
    let known = a.partial_cmp(b).unwrap_or(Ordering::Equal);
    a_unknown.cmp(&b_unknown).then(if falls { known.reverse() } else { known })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let job = |name: &str, resident_bytes, worth_bytes| JobSnapshot {
            name: name.into(),
            resident_bytes,
            worth_bytes,
            ..JobSnapshot::default()
        };
        let jobs = vec![job("b", 10, None), job("a", 30, Some(5)), job("c", 20, Some(9))];
        let mut view = View::default();
        view.learn(Snapshot { jobs, ..Snapshot::default() });
        view
    }

    fn names(view: &View) -> String {
        view.jobs().iter().map(|job| job.name.as_str()).collect()
    }

    fn press(view: &mut View, presses: &[Press]) {
        for press in presses {
            assert!(view.obey(*press), "{press:?} is not the end");
        }
    }

    #[test]
    fn columns_sort_with_unknown_values_last() {
        let mut view = view();
        assert_eq!(names(&view), "bac", "as in the table");
        press(&mut view, &[Press::Right]);
        assert_eq!(names(&view), "abc", "by name");
        press(&mut view, &[Press::Right, Press::Right]);
        assert_eq!((names(&view).as_str(), view.order.unwrap().column.head), ("acb", "size"));
        press(&mut view, &[Press::Char('r')]);
        assert_eq!(names(&view), "bca");
        press(&mut view, &[Press::Right, Press::Right]);
        assert_eq!((names(&view).as_str(), view.order.unwrap().column.head), ("cab", "knee"));
        press(&mut view, &[Press::Char('r')]);
        assert_eq!(names(&view), "acb", "unknown last");
        press(&mut view, &[Press::Left; 5]);
        assert_eq!((names(&view).as_str(), view.order), ("bac", None));
        press(&mut view, &[Press::Left]);
        assert_eq!(view.order.unwrap().column.head, "suspended", "round the end");
        press(&mut view, &[Press::Right]);
        assert_eq!(view.order, None);
    }

    #[test]
    fn chosen_job_stays_chosen_when_rows_move() {
        let mut view = view();
        assert_eq!(view.chosen(), Some(0));
        press(&mut view, &[Press::Down, Press::Right]);
        assert_eq!((view.chosen(), names(&view).as_str()), (Some(0), "abc"), "a, now the first");
        press(&mut view, &[Press::End, Press::Down]);
        assert_eq!(view.chosen(), Some(2));
        press(&mut view, &[Press::Home, Press::Up, Press::PageUp]);
        assert_eq!(view.chosen(), Some(0));
        view.learn(Snapshot::default());
        assert_eq!(view.chosen(), None);
    }

    #[test]
    fn pause_freezes_the_state_and_resumes_with_the_newest() {
        let mut view = view();
        press(&mut view, &[Press::Char('p')]);
        view.learn(Snapshot { at_seconds: 9.0, ..Snapshot::default() });
        assert_eq!((view.state.at_seconds, view.jobs().len()), (0.0, 3));
        assert_eq!(view.history.stalls().count(), 2);
        press(&mut view, &[Press::Char(' ')]);
        assert_eq!((view.state.at_seconds, view.paused), (9.0, false));
    }

    #[test]
    fn quit_keys_end_the_command() {
        for press in [Press::Char('q'), Press::Escape, Press::Interrupt] {
            assert!(!view().obey(press));
        }
        assert!(view().obey(Press::Char('c')));
    }
}
