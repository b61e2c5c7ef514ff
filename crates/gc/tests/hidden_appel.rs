//! What `hidden` does between collections, most of which are minor.

mod hidden;

#[test]
fn what_is_hidden_behind_old_objects_stays() {
    hidden::hide_between_slices();
}

#[test]
fn forks_between_collections() {
    hidden::fork_between_slices();
}
