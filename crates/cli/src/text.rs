//! Phrases that several reports share: the command, its outcome, and lists of names.

use crate::outcome::Outcome;

/// The most characters of a command on a separate line, and on a shared line of 80 columns.
const COMMAND_MAX: usize = 100;
const COMMAND_SHORT: usize = 50;
/// The most names of processes in a list.
const NAMES_MAX: usize = 4;

/// The command on one line, quoted for a shell, cut if it is long.
pub(crate) fn shown_command(words: &[String]) -> String {
    shown(words, COMMAND_MAX)
}

/// Like [`shown_command`], cut to leave room on the line.
pub(crate) fn shown_shortly(words: &[String]) -> String {
    shown(words, COMMAND_SHORT)
}

fn shown(words: &[String], most: usize) -> String {
    let quoted = words.iter().map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
        match word {
            _ if !word.is_empty() && word.chars().all(plain) => word.clone(),
            _ if word.chars().any(char::is_control) => format!("$'{}'", word.escape_default()),
            _ => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    let line = quoted.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

pub(crate) fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { status } => format!("exit status {status}"),
        Outcome::Killed { signal, name, core_dumped } => {
            let core = if *core_dumped { ", core dumped" } else { "" };
            format!("killed by signal {signal} ({name}{core})")
        }
        Outcome::Running => "runs on".to_owned(),
        Outcome::Gone => "has ended".to_owned(),
    }
}

/// The first few of `names`, and the number of the others.
pub(crate) fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let mut list: Vec<String> = names.take(NAMES_MAX).collect();
    if more > 0 {
        list.push(format!("{more} more"));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_names_are_cut() {
        let names = |n: usize| some((0..n).map(|i| format!("p{i}")).collect::<Vec<_>>().into_iter());
        assert_eq!(names(2), "p0, p1");
        assert_eq!(names(6), "p0, p1, p2, p3, 2 more");
    }
}
