//! The option `--only NAME`: chooses a section by its name, or the cells whose names contain NAME.
//!
//! Some sections run only if named. Invariant: the names of their cells begin with the section's name and a
//! dash, so that the name of a cell also names its section.

use crate::Section;

/// Whether `only` names this section or cells of it.
#[must_use]
pub fn names_section(only: &str, section: &str) -> bool {
    only.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether `only` chooses this cell of the section. Without `only` every cell is chosen.
#[must_use]
pub fn chooses(only: Option<&str>, section: &str, cell: &str) -> bool {
    only.is_none_or(|only| only == section || cell.contains(only))
}

/// Keeps the section with this name. If no section has it, keeps the cells whose names contain `only`.
#[must_use]
pub fn only(mut sections: Vec<Section>, only: &str) -> Vec<Section> {
    if sections.iter().any(|section| section.name == only) {
        sections.retain(|section| section.name == only);
    } else {
        sections.iter_mut().for_each(|section| section.cells.retain(|cell| cell.name.contains(only)));
    }
    sections.retain(|section| !section.cells.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_names_begin_with_their_section_and_are_unique() {
        for (section, names) in [
            (crate::gc::SECTION, crate::gc::names()),
            (crate::heap::SECTION, crate::heap::names()),
            (crate::advice::SECTION, crate::advice::names()),
        ] {
            assert!(names.iter().all(|name| names_section(name, section)), "{names:?}");
            assert!(names.iter().all(|name| chooses(Some(name), section, name)));
            assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
        }
        assert!(names_section("gc", "gc") && names_section("gc-short", "gc"));
        assert!(
            !names_section("gcbench", "gc") && !names_section("large", "gc") && !names_section("g", "gc")
        );
        assert!(chooses(None, "gc", "gc-short") && chooses(Some("short"), "gc", "gc-short"));
        assert!(!chooses(Some("long"), "gc", "gc-short"));
    }
}
