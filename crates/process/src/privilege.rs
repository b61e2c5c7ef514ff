//! What this process may do beyond an ordinary user: the kernel's capabilities.

/// To read, and change, the memory of processes that are not one's own.
pub const SYS_PTRACE: u32 = 19;
/// To have memory of other processes paged out.
pub const SYS_NICE: u32 = 23;

/// Whether the capability with this number is in force.
#[must_use]
pub fn holds(capability: u32) -> bool {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = held.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    held.checked_shr(capability).unwrap_or(0) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_capability_has_a_number_beyond_the_set() {
        assert!(!holds(64) && !holds(u32::MAX));
    }
}
