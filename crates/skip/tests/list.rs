//! A skip reaches the list, with its reason and its test.

use std::process::Command;
use vellum_skip::{FILE_ENV, skip};

#[test]
#[ignore = "the other test runs it, in a process of its own"]
fn skips() {
    skip(format_args!("no {}\nhere", "tool"));
}

#[test]
fn a_skip_is_listed() {
    let list = std::env::temp_dir().join(format!("vellum-skips-{}", std::process::id()));
    for threads in ["--test-threads=1", "--test-threads=2"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "skips", "--ignored", threads])
            .env(FILE_ENV, &list)
            .status();
        assert!(child.unwrap().success());
    }
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::remove_file(&list).unwrap();
    assert_eq!(text, "no tool here\tcrates/skip/tests/list.rs skips\n".repeat(2));
}
