//! Splits a benchmark's command line into the commands of the programs, and gives each program a name.

use super::parameters::Setting;
use crate::failure::Failure;
use crate::text::shown_command;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use vellum_process::{Command, locate};

/// A program to time.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) command: Command,
    pub(super) name: String,
}

pub(super) fn split<'a>(words: &'a [OsString], separator: &OsStr) -> Result<Vec<&'a [OsString]>, Failure> {
    let lines: Vec<&[OsString]> = words.split(|word| word == separator).collect();
    let missing = lines.iter().position(|line| line.is_empty());
    if let Some(at) = missing {
        let side = if at == 0 { "before" } else { "behind" };
        let word = separator.display();
        return Err(Failure::because(format!(
            "there is no program {side} {separator:?}; write COMMAND {word} COMMAND"
        )));
    }
    match lines[0].first().filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        // An unknown or removed option, which the command line took for the program.
        Some(option) => {
            let name = option.display();
            Err(Failure::because(format!(
                "there is no option {option:?}; `vellum bench --help` lists the options (a program of that name: ./{name})"
            )))
        }
        None => Ok(lines),
    }
}

pub(super) fn found(words: &[OsString], setting: &Setting) -> Result<Chosen, Failure> {
    let argv: Vec<OsString> = words.iter().map(|word| setting.fill(word)).collect();
    let program = locate(&argv[0], std::env::var_os("PATH").as_deref())?;
    let command = Command { program, argv, env: std::env::vars_os().collect(), stdio: [None, None, None] };
    Ok(Chosen { name: name(&command), command })
}

/// A command on one line, the program without its folder.
fn name(command: &Command) -> String {
    let file = Path::new(&command.argv[0]).file_name().unwrap_or(&command.argv[0]);
    let words = std::iter::once(file).chain(command.argv.iter().skip(1).map(OsString::as_os_str));
    shown_command(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn separator_splits_the_programs() {
        let vs = OsStr::new("--vs");
        let line = words("./old a --vs ./new b --vs c");
        assert_eq!(split(&line, vs).unwrap(), [words("./old a"), words("./new b"), words("c")]);
        assert_eq!(split(&words("./old a"), vs).unwrap().len(), 1);
        let line = words("./old --vs x ++ ./new");
        assert_eq!(split(&line, OsStr::new("++")).unwrap()[0], words("./old --vs x"));
    }

    #[test]
    fn names_omit_folders() {
        let argv = ["/opt/old/prog", "in/file", "-x"].map(OsString::from).into();
        let command =
            Command { program: "/opt/old/prog".into(), argv, env: Vec::new(), stdio: [None, None, None] };
        assert_eq!(name(&command), "prog in/file -x");
    }
}
