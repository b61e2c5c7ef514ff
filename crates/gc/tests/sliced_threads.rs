//! What `hidden` does between slices, with writes seen by the kernel where it does that.

mod hidden;

#[test]
fn what_is_hidden_between_slices_stays() {
    hidden::hide_between_slices();
}

#[test]
fn forks_between_slices() {
    hidden::fork_between_slices();
}
