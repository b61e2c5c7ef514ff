//! Tests that a skip reaches the list with its reason and its test's name, and that helper processes start.

use vellum_skip::{ALONE_ENV, FILE_ENV, again, alone, forked, role, skip};

#[test]
fn skip_is_listed() {
    if role().is_some() {
        return skip(format_args!("no {}\nhere", "tool"));
    }
    let list = std::env::temp_dir().join(format!("vellum-skips-{}", std::process::id()));
    for threads in ["--test-threads=1", "--test-threads=2"] {
        let child = again(skip_is_listed, "skips").arg(threads).env(FILE_ENV, &list).status();
        assert!(child.unwrap().success());
    }
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::remove_file(&list).unwrap();
    assert_eq!(text, "no tool here\tcrates/skip/tests/list.rs skip_is_listed\n".repeat(2));
}

#[test]
fn alone_runs_a_test_in_its_own_process() {
    alone(|| assert!(std::env::var_os(ALONE_ENV).is_some()));
}

#[test]
fn failure_in_the_child_fails_the_test() {
    if role().is_some() {
        return alone(|| panic!("as it should"));
    }
    let child = again(failure_in_the_child_fails_the_test, "fails").env_remove(ALONE_ENV).output().unwrap();
    assert!(String::from_utf8_lossy(&child.stdout).contains("as it should"), "{child:?}");
    assert!(!child.status.success());
}

#[test]
fn forked_child_has_one_thread() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count() as i32;
    assert_eq!(libc::WEXITSTATUS(forked(threads)), 1);
    assert_eq!(libc::WEXITSTATUS(forked(|| panic!("as it should"))), 101);
}
