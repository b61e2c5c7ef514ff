//! The keeper restores files that this process has changed, even if the process is killed. For that it has a
//! record and guardian processes, as a governor has ([`crate::guardian`]).
//!
//! ```text
//! will_change(file, old content) ─▶ write ─▶ ... ─▶ put_back
//!      kill -9 in between: a guardian restores the file at once
//! ```

use crate::guardian::{Guardian, GuardianError};
use crate::place;
use std::io;
use std::path::{Path, PathBuf};

/// Guards changed files. Its directory goes with it.
#[derive(Debug)]
pub struct Keeper {
    guardian: Option<Guardian>,
    directory: PathBuf,
}

impl Keeper {
    /// A keeper of this process's own.
    pub fn start() -> Result<Keeper, GuardianError> {
        let directory = place::usual().with_extension(format!("keeper-{}", std::process::id()));
        let failed = |source| GuardianError::from(("mkdir", source));
        std::fs::DirBuilder::new().recursive(true).create(&directory).map_err(failed)?;
        let guardian = Guardian::start(&directory).map(|(guardian, _)| guardian).inspect_err(|_| {
            let _ = std::fs::remove_dir(&directory);
        })?;
        Ok(Keeper { guardian: Some(guardian), directory })
    }

    /// Writes `content` to `file` while `work` runs. The file is restored then, even if this process is
    /// killed.
    pub fn while_set<R>(&self, file: &Path, content: &str, work: impl FnOnce() -> R) -> io::Result<R> {
        let before = std::fs::read_to_string(file)?;
        self.while_set_from(file, before.trim(), content, work)
    }

    /// The same for a file that is read in another form than it is written: `before` restores it.
    pub fn while_set_from<R>(
        &self,
        file: &Path,
        before: &str,
        content: &str,
        work: impl FnOnce() -> R,
    ) -> io::Result<R> {
        let guarded = self
            .guardian
            .as_ref()
            .is_some_and(|guardian| guardian.is_alive() && guardian.table().will_change(file, before));
        if !guarded {
            return Err(io::Error::other("there is no guardian that would put it back"));
        }
        let written = std::fs::write(file, content);
        let done = written.map(|()| work());
        let back = std::fs::write(file, before);
        if let (Ok(()), Some(guardian)) = (&back, &self.guardian) {
            guardian.table().changed_back(file);
        }
        back.and(done)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.guardian.take());
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_something_else_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("limit");
        std::fs::write(&file, "max\n").unwrap();
        let keeper = Keeper::start().unwrap();
        let seen = keeper.while_set(&file, "5", || std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!((seen.as_str(), std::fs::read_to_string(&file).unwrap().as_str()), ("5", "max"));
        assert!(keeper.while_set(Path::new("/no/such/file"), "5", || ()).is_err());
        let killer = folder.path().join("killer");
        std::fs::write(&killer, "oom_kill_disable 0\n").unwrap();
        let read = || [&killer, &file].map(|file| std::fs::read_to_string(file).unwrap());
        let both = || keeper.while_set(&file, "6", read);
        let seen = keeper.while_set_from(&killer, "0", "1", both).unwrap().unwrap();
        assert_eq!((seen, read()), (["1", "6"].map(str::to_owned), ["0", "max"].map(str::to_owned)));
        let directory = keeper.directory.clone();
        drop(keeper);
        assert!(!directory.exists());
    }
}
