//! Lines of at most 80 columns, or as many as there are.

/// Columns of a line.
pub(crate) const COLUMNS: usize = 80;

/// `text` in lines that fit beside an indent of this many columns, broken at blanks. A row of a table that
/// fits stays as it is.
pub(crate) fn wrapped(text: &str, indent: usize) -> Vec<String> {
    wrapped_to(text, indent, COLUMNS)
}

/// The same, in lines of `columns`.
pub(crate) fn wrapped_to(text: &str, indent: usize, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(indent);
    if text.chars().count() <= room {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let longer = lines[last].chars().count() + 1 + word.chars().count();
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if longer <= room {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_and_nothing_is_lost() {
        let text = "word ".repeat(40).trim().to_owned();
        let lines = wrapped(&text, 12);
        assert!(lines.iter().all(|line| line.len() <= 68) && lines.len() == 4, "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrapped("   a row", 12), ["   a row"]);
    }
}
