//! Programs that give up privileges, or move to another namespace, with a helper of ours beside them.

use vellum_conformance::{Place, check_all, skip};

#[test]
fn identities() {
    if !rustix::process::geteuid().is_root() {
        skip("changing identity is root's to try; what anybody may do is tried");
    }
    let place = Place::new();
    check_all(&place.program("identity.c", &["-pthread"]));
}
