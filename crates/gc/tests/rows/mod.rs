//! Rows of a table: a heap is its process's, so what is for several heaps runs this program again for each.

use std::process::Command;

/// Names the test that a process was started for.
#[allow(dead_code, reason = "each program needs some of these")]
const ROW: &str = "VELLUM_TEST_ROW";
/// Names the plan of a process: see `plan`.
#[allow(dead_code, reason = "each program needs some of these")]
const PLAN: &str = "VELLUM_TEST_PLAN";
/// Bytes of page frames for a heap on paged blocks: see `paged`.
const PAGED: &str = "VELLUM_TEST_PAGED";

/// Runs `body` for the test of this name in a process of its own, on paged blocks if `frames` has their
/// bytes.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) fn alone(test: &str, frames: Option<u64>, body: impl FnOnce()) {
    if std::env::var(ROW).is_ok_and(|row| row == test) {
        return body();
    }
    let mut again = this_program(frames);
    expect_passed(again.env(ROW, test).args(["--exact", test]), test);
}

/// Runs all tests of this program but the one of this name again, for each plan and size of the page frames.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) fn each(test: &str, rows: &[(&str, Option<u64>)]) {
    for &(plan, frames) in rows {
        let mut again = this_program(frames);
        let row = format!("{plan}, frames: {frames:?}");
        expect_passed(again.env(PLAN, plan).args(["--skip", test]), &row);
    }
}

fn this_program(frames: Option<u64>) -> Command {
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.arg("--nocapture");
    if let Some(bytes) = frames {
        again.env(PAGED, bytes.to_string());
    }
    again
}

fn expect_passed(again: &mut Command, row: &str) {
    let ended = again.output().expect("this program again");
    let said = String::from_utf8_lossy(&ended.stdout);
    println!("{row}:\n{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{row}: {}", ended.status);
    assert!(said.contains("test result: ok") && !said.contains(" 0 passed"), "{row}: nothing was tested");
}
