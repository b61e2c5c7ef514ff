//! `vellum bench --vs-ref`: checks out and builds another revision of the program's sources, to compare with.
//!
//! The revision is checked out into its own git work tree in the temporary folder. The work tree is removed
//! at the end, even after a failure. The build command runs in both trees, so that both programs are built in
//! the same way. The program to compare with is the file at the same path in the other tree. Both programs
//! run in the current directory of this command, and so read the same data.

use super::chosen::Chosen;
use crate::failure::Failure;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command as System, Stdio};
use tempfile::TempDir;
use vellum_process::Command;

/// A revision that is checked out and built.
#[derive(Debug)]
pub(super) struct Revision {
    name: String,
    /// The tree that this command runs in.
    here: PathBuf,
    there: PathBuf,
    /// The temporary folder, removed last.
    _folder: TempDir,
}

impl Revision {
    /// Checks `name` out, and builds it and the current tree with the line `build`.
    pub(super) fn build(name: &str, build: Option<&OsStr>) -> Result<Revision, Failure> {
        let failed = |why: String| refused(name, &why);
        let here = git(None, &["rev-parse", "--show-toplevel"]).map_err(failed)?;
        let here = PathBuf::from(here);
        let commit = format!("{name}^{{commit}}");
        let missing = |_| failed(format!("there is no such commit in {}", here.display()));
        let commit =
            git(Some(&here), &["rev-parse", "--verify", "--end-of-options", &commit]).map_err(missing)?;
        let folder = tempfile::Builder::new().prefix("vellum-revision-").tempdir();
        let folder = folder.map_err(|error| failed(format!("no temporary folder: {error}")))?;
        let there = folder.path().join("tree");
        let revision = Revision { name: name.to_owned(), here, there, _folder: folder };
        let path = revision.there.to_string_lossy().into_owned();
        git(Some(&revision.here), &["worktree", "add", "--detach", "--quiet", &path, &commit])
            .map_err(failed)?;
        for tree in [&revision.there, &revision.here] {
            build.map_or(Ok(()), |line| revision.run(line, tree))?;
        }
        Ok(revision)
    }

    /// The same program of the other revision.
    pub(super) fn program(&self, here: &Chosen) -> Result<Chosen, Failure> {
        let failed = |why: String| refused(&self.name, &why);
        let file = &here.command.program;
        let path =
            std::fs::canonicalize(file).map_err(|error| failed(format!("{}: {error}", file.display())))?;
        let inside = path.strip_prefix(&self.here).map_err(|_| {
            let (file, here) = (file.display(), self.here.display());
            failed(format!("{file} lies outside of {here}, so the revision has no other one"))
        })?;
        let program = self.there.join(inside);
        if !program.exists() {
            let inside = inside.display();
            return Err(failed(format!(
                "it has no {inside} after the build; give the build command with --build"
            )));
        }
        let words = here.command.argv.iter().skip(1).cloned();
        let argv = std::iter::once(program.clone().into_os_string()).chain(words).collect();
        let env = here.command.env.clone();
        let command = Command { program, argv, env, stdio: [None, None, None] };
        Ok(Chosen { command, name: format!("{} of {}", here.name, self.name) })
    }

    fn run(&self, line: &OsStr, tree: &Path) -> Result<(), Failure> {
        let failed = |why: String| refused(&self.name, &why);
        let mut shell = System::new("/bin/sh");
        shell.arg("-c").arg(line).current_dir(tree).stdin(Stdio::null());
        // The messages of a build are no result: they go to standard error like this command's messages.
        shell.stdout(std::io::stderr());
        let status = shell.status().map_err(|error| failed(format!("/bin/sh: {error}")))?;
        let line = line.to_string_lossy();
        if status.success() {
            Ok(())
        } else {
            Err(failed(format!("{line:?} in {}: {status}", tree.display())))
        }
    }
}

impl Drop for Revision {
    fn drop(&mut self) {
        let path = self.there.to_string_lossy().into_owned();
        // If this fails, git itself prunes the entry later, as the tree is gone.
        let _ = git(Some(&self.here), &["worktree", "remove", "--force", &path]);
    }
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::because(format!("the revision {name:?}: {why}"))
}

/// The first line of git's output, or its error.
fn git(folder: Option<&Path>, words: &[&str]) -> Result<String, String> {
    let mut command = System::new("git");
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let ran = command.args(words).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("git could not be run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
    if ran.status.success() {
        Ok(text(&ran.stdout))
    } else {
        Err(text(&ran.stderr).replacen("fatal: ", "", 1))
    }
}
