//! Checks of a finding (its text, tables and drawn figures) that the tests of all papers share.

use std::path::Path;
use vellum_papers::{Finding, write_figures};

/// Checks text and tables, writes the figures into `folder`, and returns their names.
pub(crate) fn figures(finding: &Finding, folder: &Path) -> Vec<String> {
    let text = finding.text();
    assert!(text.contains("Goal"), "no closing line:\n{text}");
    assert!(!text.contains("WRONG RESULT"), "{text}");
    for table in &finding.tables {
        let even = table.rows.iter().all(|row| row.len() == table.columns.len());
        assert!(even, "{}: ragged rows", table.title);
    }
    let paths = write_figures(finding, folder).expect("a writable directory");
    for path in &paths {
        let svg = std::fs::read_to_string(path).expect("a figure just written");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{}", path.display());
    }
    paths.iter().map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}
