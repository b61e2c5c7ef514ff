//! What figures were measured on.

use serde::Serialize;

/// A machine, as far as it matters to timings.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
    /// Processors that can be used.
    pub processors: usize,
    /// Total memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's policy for huge pages, the chosen word.
    pub huge_pages: String,
}

impl Machine {
    /// This one, as far as /proc and /sys tell.
    #[must_use]
    pub fn here() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let unknown = || "unknown".to_owned();
        let kilobytes = field(&text("/proc/meminfo"), "MemTotal");
        let kilobytes = kilobytes.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let policy = text("/sys/kernel/mm/transparent_hugepage/enabled");
        Self {
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: field(&text("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kilobytes.unwrap_or(0) << 10,
            huge_pages: policy.split(['[', ']']).nth(1).map_or_else(unknown, str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let here = Machine::here();
        assert!(!here.kernel.is_empty() && here.processors > 0 && here.memory_bytes > 0);
    }
}
