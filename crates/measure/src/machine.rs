//! A description of the machine on which something was measured.
//!
//! Figures from unknown machines cannot be compared. The fields have the properties that affect timings: the
//! processor and its clock policy, the kernel and its tick, the hardware of the kernel's clocks, huge pages,
//! the hypervisor. No field identifies the machine: there is no host name, address or user.
//!
//! `vellum-timing` fills the fields in. Fields that could not be read are `None` or empty, and count as
//! different from any known value.

use serde::{Deserialize, Serialize};

/// The properties of a machine that affect timings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
    /// The number of usable processors.
    pub processors: usize,
    /// Total memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's policy for huge pages, the chosen word.
    pub huge_pages: String,
    /// The kernel's tick (`CONFIG_HZ`), per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// The kernel's clock source, such as `tsc` or `kvm-clock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// The rate of the time-stamp counter, kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsc_khz: Option<u64>,
    /// True if that counter runs at one rate in every state of the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsc_invariant: Option<bool>,
    /// The frequency governor, such as `performance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// True if the frequency may rise above the nominal one for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// The hypervisor below, such as `KVM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
}

impl Machine {
    /// Every field by name, with its value as text; `None` if it could not be read.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, Option<String>); 12] {
        let text = |value: &String| (!value.is_empty()).then(|| value.clone());
        [
            ("kernel", text(&self.kernel)),
            ("processor", text(&self.processor)),
            ("processors", (self.processors != 0).then(|| self.processors.to_string())),
            ("memory_bytes", (self.memory_bytes != 0).then(|| self.memory_bytes.to_string())),
            ("huge_pages", text(&self.huge_pages)),
            ("hz", self.hz.map(|hz| hz.to_string())),
            ("clocksource", self.clocksource.clone()),
            ("tsc_khz", self.tsc_khz.map(|khz| khz.to_string())),
            ("tsc_invariant", self.tsc_invariant.map(|invariant| invariant.to_string())),
            ("governor", self.governor.clone()),
            ("turbo", self.turbo.map(|turbo| turbo.to_string())),
            ("hypervisor", self.hypervisor.clone()),
        ]
    }

    /// Sets the field of this name from text, in the form of [`fields`](Self::fields). `false` if there is no
    /// such field or the text is not a valid value.
    #[must_use]
    pub fn set(&mut self, field: &str, text: &str) -> bool {
        fn to<T: std::str::FromStr>(place: &mut T, text: &str) -> bool {
            text.parse().map(|value| *place = value).is_ok()
        }
        fn to_some<T: std::str::FromStr>(place: &mut Option<T>, text: &str) -> bool {
            text.parse().map(|value| *place = Some(value)).is_ok()
        }
        match field {
            "kernel" => to(&mut self.kernel, text),
            "processor" => to(&mut self.processor, text),
            "processors" => to(&mut self.processors, text),
            "memory_bytes" => to(&mut self.memory_bytes, text),
            "huge_pages" => to(&mut self.huge_pages, text),
            "hz" => to_some(&mut self.hz, text),
            "clocksource" => to_some(&mut self.clocksource, text),
            "tsc_khz" => to_some(&mut self.tsc_khz, text),
            "tsc_invariant" => to_some(&mut self.tsc_invariant, text),
            "governor" => to_some(&mut self.governor, text),
            "turbo" => to_some(&mut self.turbo, text),
            "hypervisor" => to_some(&mut self.hypervisor, text),
            _ => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine with every field filled.
    pub(crate) fn full() -> Machine {
        Machine {
            kernel: "6.1.0-28-amd64".into(),
            processor: "AMD EPYC 7B13: 2.4 GHz".into(),
            processors: 2,
            memory_bytes: 8 << 30,
            huge_pages: "madvise".into(),
            hz: Some(250),
            clocksource: Some("kvm-clock".into()),
            tsc_khz: Some(2_600_000),
            tsc_invariant: Some(true),
            governor: Some("performance".into()),
            turbo: Some(false),
            hypervisor: Some("KVM".into()),
        }
    }

    #[test]
    fn json_has_every_field() {
        let json = serde_json::to_value(full()).unwrap();
        let names: Vec<&str> = full().fields().iter().map(|(name, _)| *name).collect();
        assert_eq!(json.as_object().unwrap().len(), names.len());
        assert!(names.iter().all(|name| json.get(name).is_some()));
        assert_eq!(serde_json::from_value::<Machine>(json).unwrap(), full());
    }
}
