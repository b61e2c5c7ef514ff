//! What `hidden` does between slices, with writes found out by page protection.

mod hidden;

use vellum_sys::{Caps, caps};

#[test]
fn what_is_hidden_between_slices_stays() {
    caps::drop(Caps::TRACK);
    hidden::hide_between_slices();
}

#[test]
fn forks_between_slices() {
    caps::drop(Caps::TRACK);
    hidden::fork_between_slices();
}
