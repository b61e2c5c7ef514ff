//! Takes pictures of HTML pages with headless Chromium.

use super::exits;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the folder for the documentation's pictures; optional.
const PICTURES_ENV: &str = "VELLUM_TEST_PICTURES";
/// The largest allowed picture, in bytes.
const PICTURE_MAX: u64 = 150_000;

/// The folder for the documentation's pictures: from the environment, or else `place`.
pub(crate) fn pictures(place: &Path) -> PathBuf {
    std::env::var_os(PICTURES_ENV).map_or(place.to_path_buf(), PathBuf::from)
}

pub(crate) fn browser() -> Option<PathBuf> {
    let found = |name: &&str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let name =
        ["chromium", "chromium-browser"].into_iter().find(|name| found(name).is_ok_and(|it| it.success()));
    if name.is_none() {
        vellum_skip::skip("no chromium is here: pages are not drawn");
    }
    name.map(PathBuf::from)
}

/// Draws `page` into `picture`, with this width and height in points.
pub(crate) fn draw(browser: &Path, page: &Path, picture: &Path, (width, height): (u32, u32), is_dark: bool) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
    ]);
    command.arg(format!("--user-data-dir={}", home.path().display()));
    if is_dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    command.arg(format!("--window-size={width},{height}")).arg(format!("--screenshot={}", picture.display()));
    command.arg(format!("file://{}", page.display())).env("HOME", home.path());
    exits(0, command.output().expect("the browser starts"));
    let drawn = std::fs::read(picture).expect("a picture");
    let side = |at: usize| u32::from_be_bytes(drawn[at..at + 4].try_into().unwrap());
    assert_eq!((&drawn[1..4], side(16), side(20)), (&b"PNG"[..], width, height));
    assert!(drawn.len() as u64 <= PICTURE_MAX, "{} bytes: {}", drawn.len(), picture.display());
}
