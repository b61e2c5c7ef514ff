//! Reads, ages and evicts the multi-generational LRU of a cgroup, through `/sys/kernel/debug/lru_gen`.
//!
//! Linux (6.1) keeps the pages of each cgroup and NUMA node in up to four *generations*, numbered in order.
//! Ageing a cgroup makes a new, youngest generation. Pages whose accessed bit was set since the last ageing
//! move to the generation that was youngest until then:
//!
//! ```text
//!            ageing 1           ageing 2           ageing 3          now
//! ── s ──────────┼───── s+1 ────────┼───── s+2 ────────┼───── s+3 ──────▶
//! number s:        referenced then,   referenced then,   new since
//! all older        and not later      and not later
//! ```
//!
//! As of the last ageing, the pages of generation g and younger are the pages referenced since g began. The
//! pages of g and older have not been referenced since g + 1 began. When a fifth generation is needed, the
//! oldest two are joined. The order of references is therefore known for the last three ageings only.
//!
//! Evicting takes the pages of a generation and of older ones. The kernel does not evict the youngest two.
//!
//! Some pages are in no generation: locked ones, and a few dozen for each processor that wait to be listed.
//! File pages read by system calls are in generations, but reading them again does not make them younger.
//!
//! Ageing and evicting need root and a mounted debugfs. Ageing clears the same accessed bits as `clear_refs`:
//! if both are used, each misses a part of the references.
//!
//! Source: Linux, Documentation/admin-guide/mm/multigen_lru.rst.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";
/// Which parts of it are switched on, as bits.
const ENABLED: &str = "/sys/kernel/mm/lru_gen/enabled";
/// In that: the lists, and the walks over page tables.
const LISTS_AND_WALKS: u64 = 3;
/// The most generations there are.
pub const GENERATIONS: u64 = 4;
/// The youngest generations, this many, are never evicted.
pub const YOUNGEST: u64 = 2;
/// Another process may age at the same time; ours is tried this often.
const TRIES: u32 = 4;
/// Anonymous pages and those of files are taken alike.
const SWAPPINESS: u32 = 100;

/// One generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Its number; younger ones have greater ones.
    pub number: u64,
    /// Wall-clock time since it began.
    pub age: Duration,
    /// Pages that are of no file.
    pub anonymous: u64,
    /// Pages of files.
    pub file: u64,
}

impl Generation {
    /// All of its pages.
    pub fn pages(&self) -> u64 {
        self.anonymous.saturating_add(self.file)
    }
}

/// The generations of one control group's memory on one node, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The control group's number.
    pub group: u64,
    /// The node.
    pub node: u32,
    /// At least one.
    pub generations: Vec<Generation>,
}

impl List {
    /// The youngest generation's number.
    pub fn youngest(&self) -> u64 {
        self.generations.last().map_or(0, |last| last.number)
    }

    /// Pages in generations from this number on.
    pub fn pages_since(&self, number: u64) -> u64 {
        let pages = self.generations.iter().filter(|one| one.number >= number).map(Generation::pages);
        pages.fold(0, u64::saturating_add)
    }

    /// The youngest generation that may be evicted and has not been referenced for `idle` of wall-clock
    /// time, and the number of pages in it and in older ones.
    pub fn idle_for(&self, idle: Duration) -> Option<(u64, u64)> {
        let pairs = self.generations.windows(2).rev();
        // When the next younger one began, this one was complete: none of its pages was referenced later.
        let old = pairs.map(|pair| (pair[0], pair[1].age)).find(|(one, unreferenced)| {
            *unreferenced >= idle && one.number.saturating_add(YOUNGEST) <= self.youngest()
        });
        let number = old?.0.number;
        Some((number, self.pages_since(0) - self.pages_since(number.saturating_add(1))))
    }
}

/// The generations of a control group and of those below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupGenerations {
    file: PathBuf,
    /// The kernel's name for it: the path from the root of the hierarchy.
    path: String,
}

/// Tests if generations can be read and aged here.
pub fn available() -> Result<(), String> {
    let enabled = std::fs::read_to_string(ENABLED)
        .map_err(|why| format!("{ENABLED}: {why}; it needs Linux 6.1 with CONFIG_LRU_GEN"))?;
    let bits = u64::from_str_radix(enabled.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    if bits & LISTS_AND_WALKS != LISTS_AND_WALKS {
        return Err(format!(
            "{ENABLED} is {}: the generations are switched off; as root, write y there",
            enabled.trim()
        ));
    }
    match std::fs::OpenOptions::new().read(true).write(true).open(LRU_GEN) {
        Ok(_) => Ok(()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            Err(format!("{LRU_GEN} is not there: as root, `mount -t debugfs none /sys/kernel/debug`"))
        }
        Err(why) => Err(format!("{LRU_GEN}: {why}; it needs root")),
    }
}

impl GroupGenerations {
    /// The generations of the control group of version 2 with this directory.
    pub fn of(directory: &Path) -> Result<GroupGenerations, String> {
        available()?;
        let mounts = crate::text("/proc/self/mountinfo").unwrap_or_default();
        let real = directory.canonicalize().map_err(|why| format!("{}: {why}", directory.display()))?;
        let path = in_hierarchy(&mounts, &real)
            .ok_or_else(|| format!("{}: it is no control group of version 2", directory.display()))?;
        let group = GroupGenerations { file: LRU_GEN.into(), path };
        let found = group.lists().map_err(|why| format!("{LRU_GEN}: {why}"))?;
        if found.is_empty() {
            return Err(format!(
                "{}: its memory is counted with the group above it; write +memory to cgroup.subtree_control there",
                directory.display()
            ));
        }
        Ok(group)
    }

    /// All its lists.
    pub fn lists(&self) -> io::Result<Vec<List>> {
        Ok(parse(&std::fs::read_to_string(&self.file)?, &self.path))
    }

    /// Begins a new generation in every list, and returns the lists then.
    ///
    /// # Errors
    /// The system's, or [`io::ErrorKind::WouldBlock`] if other processes age the group at the same time.
    pub fn age(&self) -> io::Result<Vec<List>> {
        let before = self.lists()?;
        for _ in 0..TRIES {
            let now = self.lists()?;
            let aged = |list: &&List| {
                let was = before.iter().find(|was| (was.group, was.node) == (list.group, list.node));
                was.is_none_or(|was| list.youngest() > was.youngest())
            };
            let mut commands = String::new();
            for list in now.iter().filter(|list| !aged(list)) {
                // The last two: anonymous memory too, and every page table rather than the likely ones.
                let _ = writeln!(commands, "+ {} {} {} 1 1", list.group, list.node, list.youngest());
            }
            if commands.is_empty() {
                return Ok(now);
            }
            for command in commands.lines() {
                match std::fs::write(&self.file, command) {
                    // Somebody else has aged it meanwhile, or it is gone.
                    Err(why) if matches!(why.raw_os_error(), Some(libc::EINVAL | libc::ERANGE)) => {}
                    other => other?,
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "somebody else ages this control group at the same time",
        ))
    }

    /// Takes up to `pages` pages that have not been referenced for `idle` of wall-clock time. The kernel may
    /// take fewer, and of one list a few more.
    pub fn evict(&self, idle: Duration, pages: u64) -> io::Result<()> {
        let mut left = pages;
        for list in self.lists()? {
            let Some((number, there)) = list.idle_for(idle).filter(|_| left > 0) else { continue };
            let wanted = there.min(left);
            if wanted == 0 {
                continue;
            }
            let command = format!("- {} {} {number} {SWAPPINESS} {wanted}", list.group, list.node);
            std::fs::write(&self.file, command)?;
            left -= wanted;
        }
        Ok(())
    }
}

/// The path that the kernel has for the control group at `directory`, by the text of `mountinfo`.
pub(crate) fn in_hierarchy(mounts: &str, directory: &Path) -> Option<String> {
    let found = mounts.lines().filter_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, point) = (words.next()?, Path::new(words.next()?));
        let below = directory.strip_prefix(point).ok().filter(|_| rest.starts_with("cgroup2 "))?;
        Some((point.as_os_str().len(), Path::new(root).join(below)))
    });
    let path = found.max_by_key(|(long, _)| *long)?.1;
    let path = path.to_str()?.trim_end_matches('/');
    Some(if path.is_empty() { "/".to_owned() } else { path.to_owned() })
}

pub(crate) fn parse(text: &str, path: &str) -> Vec<List> {
    let below = format!("{}/", path.trim_end_matches('/'));
    let mut lists: Vec<List> = Vec::new();
    let mut group = None;
    for line in text.lines() {
        let (word, rest) = line.trim_start().split_once(' ').unwrap_or((line.trim(), ""));
        match word {
            "memcg" => {
                let (number, name) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), "/"));
                let ours = name == path || name.starts_with(&below);
                group = number.parse().ok().filter(|_| ours);
            }
            "node" => {
                if let (Some(group), Ok(node)) = (group, rest.trim().parse()) {
                    lists.push(List { group, node, generations: Vec::new() });
                }
            }
            _ => {
                let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
                if let (Some(_), Some(list), &[number, age, anonymous, file]) =
                    (group, lists.last_mut(), &numbers[..])
                {
                    let age = Duration::from_millis(age);
                    list.generations.push(Generation { number, age, anonymous, file });
                }
            }
        }
    }
    lists.retain(|list| !list.generations.is_empty());
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "memcg     1 /\n node     0\n         0      90000          5         10 \n          1      80000          1          2 \n\
        memcg    44 /jobs/a b\n node     0\n          7       9000        100         20 \n          8       6000         30          0 \n\
         \x20         9       3000          4          0 \n         10       1000          1          6 \n\
        memcg    45 /jobs/a b/below\n node     0\n          3         50          8          0 \n node     1\n          0         50          0          0 \n\
        memcg    46 /jobs/a bc\n node     0\n          3         50          8          0 \n";

    #[test]
    fn a_group_and_those_below_it_are_found() {
        let lists = parse(TEXT, "/jobs/a b");
        let places: Vec<_> = lists.iter().map(|list| (list.group, list.node, list.youngest())).collect();
        assert_eq!(places, [(44, 0, 10), (45, 0, 3), (45, 1, 0)]);
        assert_eq!([9, 8, 0].map(|from| lists[0].pages_since(from)), [11, 41, 161]);
        assert_eq!(parse(TEXT, "/").len(), 5, "the root has all below it");
        assert!(parse("memcg x\n node\n 1 2\n", "/").is_empty() && parse("", "/").is_empty());
    }

    #[test]
    fn idle_is_what_the_next_generations_beginning_left_behind() {
        let list = &parse(TEXT, "/jobs/a b")[0];
        assert_eq!(list.idle_for(Duration::from_millis(500)), Some((8, 150)), "the youngest two stay");
        assert_eq!(list.idle_for(Duration::from_millis(3000)), Some((8, 150)));
        assert_eq!(list.idle_for(Duration::from_millis(3001)), Some((7, 120)));
        assert_eq!(list.idle_for(Duration::from_millis(6001)), None, "nobody knows how old the oldest are");
    }

    #[test]
    fn the_kernels_name_of_a_group_is_found_by_its_mount() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n31 20 0:27 /inner /c rw shared:1 - cgroup2 none rw\n\
            32 20 0:28 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n";
        let path = |directory: &str| in_hierarchy(mounts, Path::new(directory));
        assert_eq!(path("/sys/fs/cgroup").as_deref(), Some("/"));
        assert_eq!(path("/sys/fs/cgroup/jobs/a b").as_deref(), Some("/jobs/a b"));
        assert_eq!(path("/c/x").as_deref(), Some("/inner/x"));
        assert_eq!(path("/home"), None);
    }
}
