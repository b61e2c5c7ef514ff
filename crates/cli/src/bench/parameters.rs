//! Parameters of a benchmark: names that stand for several values, in commands and in their steps
//! (`--setup`, `--prepare` and so on).
//!
//! `-L n 1,2,4 -- ./prog --size {n}` times three programs. With several parameters, every combination is
//! timed; the last parameter changes fastest. Only `{NAME}` with the name of a parameter is replaced; other
//! braces stay.

use crate::failure::Failure;
use std::ffi::{OsStr, OsString};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setting(Vec<(String, String)>);

impl Setting {
    /// Replaces the names in a word by their values. A word that is not UTF-8 has no names in it.
    pub(super) fn fill(&self, word: &OsStr) -> OsString {
        let Some(text) = word.to_str() else { return word.to_owned() };
        let fill = |text: String, (name, value): &(String, String)| text.replace(&place(name), value);
        self.0.iter().fold(text.to_owned(), fill).into()
    }
}

fn place(name: &str) -> String {
    format!("{{{name}}}")
}

/// Every combination of values; without parameters, one empty combination. `words` are all words in which the
/// names may occur; `given` has names and lists of values alternately.
pub(super) fn settings<'a>(
    given: &[String],
    words: impl Iterator<Item = &'a OsStr> + Clone,
) -> Result<Vec<Setting>, Failure> {
    let mut all = vec![Setting::default()];
    for pair in given.chunks(2) {
        let [name, values] = pair else { unreachable!("the command line takes them in pairs") };
        let wrong = |why| Err(Failure::because(format!("the parameter {name:?}: {why}")));
        if name.is_empty() || name.contains(['{', '}']) {
            return wrong("a name has at least one character, and no braces");
        }
        if all[0].0.iter().any(|(earlier, _)| earlier == name) {
            return wrong("it is given twice");
        }
        let place = place(name);
        if !words.clone().any(|word| word.to_str().is_some_and(|text| text.contains(&place))) {
            return wrong("no command has its name in braces; write {NAME} where its values belong");
        }
        let with = |earlier: &Setting, value: &str| {
            Setting(earlier.0.iter().cloned().chain([(name.clone(), value.to_owned())]).collect())
        };
        all = all.iter().flat_map(|earlier| values.split(',').map(|value| with(earlier, value))).collect();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(given: &[&str], word: &str) -> Result<Vec<String>, String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        let word = OsStr::new(word);
        let found = settings(&given, [word].into_iter()).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|one| one.fill(word).to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn every_combination_of_parameters_makes_a_program() {
        assert_eq!(filled(&[], "{n}").unwrap(), ["{n}"]);
        assert_eq!(filled(&["n", "1,2"], "-n{n}/{m}").unwrap(), ["-n1/{m}", "-n2/{m}"]);
        let both = filled(&["n", "1,2", "m", "x,y"], "{n}{m}{n}").unwrap();
        assert_eq!(both, ["1x1", "1y1", "2x2", "2y2"]);
        assert_eq!(filled(&["n", ""], "a{n}").unwrap(), ["a"], "an empty value is one");
    }

    #[test]
    fn parameters_without_values_are_refused() {
        assert!(filled(&["n", "1"], "m").unwrap_err().contains("\"n\": no command has"));
        assert!(filled(&["n", "1", "n", "2"], "{n}").unwrap_err().contains("twice"));
        assert!(filled(&["{n}", "1"], "{n}").unwrap_err().contains("no braces"));
    }
}
