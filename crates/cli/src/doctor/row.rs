//! The findings of `vellum doctor`: one row for each feature. The JSON consists of these structures (schema
//! `vellum.doctor/1`, documented in docs/doctor.md).

use serde::Serialize;

pub(super) const SCHEMA: &str = "vellum.doctor/1";

/// The separator between the reason and the remedy in Vellum's messages.
const CURE_FOLLOWS: &str = "; ";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Works,
    FallsBack,
    Missing,
    /// The state cannot be determined on this machine.
    NotShown,
}

impl State {
    pub(super) const ALL: [State; 4] = [State::Works, State::FallsBack, State::Missing, State::NotShown];

    pub(super) fn words(self) -> &'static str {
        match self {
            State::Works => "works",
            State::FallsBack => "falls back",
            State::Missing => "missing",
            State::NotShown => "not shown",
        }
    }

    /// A count in words: "5 fall back".
    pub(super) fn counted(self, number: usize) -> String {
        let (one, several) = match self {
            State::Works => ("works", "work"),
            State::FallsBack => ("falls back", "fall back"),
            State::Missing => ("is missing", "are missing"),
            State::NotShown => ("is not shown", "are not shown"),
        };
        let verb = if number == 1 { one } else { several };
        format!("{number} {verb}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Section {
    Libraries,
    Memory,
    Limits,
    Watching,
    Profiling,
    Benchmarks,
}

impl Section {
    pub(super) fn words(self) -> &'static str {
        match self {
            Section::Libraries => "files of Vellum",
            Section::Memory => "memory of programs (run, --frames, the collector)",
            Section::Limits => "limits and control groups (run, govern)",
            Section::Watching => "working sets (watch, run, govern)",
            Section::Profiling => "profiles (cost, gc-stat)",
            Section::Benchmarks => "timings (bench)",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) section: Section,
    pub(super) state: State,
    /// The use of the feature, or the finding.
    pub(super) what: String,
    pub(super) instead: Option<String>,
    /// The reason: errno, file or setting.
    pub(super) why: Option<String>,
    pub(super) cure: Option<String>,
}

impl Row {
    pub(super) fn works(section: Section, name: &'static str, what: impl Into<String>) -> Row {
        Row { name, section, state: State::Works, what: what.into(), instead: None, why: None, cure: None }
    }

    /// This row, with an undetermined state.
    pub(super) fn not_shown(self, why: impl Into<String>) -> Row {
        Row { state: State::NotShown, why: Some(why.into()), ..self }
    }

    pub(super) fn falls_back(self, instead: &str, why: impl Into<String>, cure: impl Into<String>) -> Row {
        let (why, cure) = (Some(why.into()), Some(cure.into()));
        Row { state: State::FallsBack, instead: Some(instead.to_owned()), why, cure, ..self }
    }

    /// This row, unless the feature does not work.
    pub(super) fn unless(
        self,
        works: bool,
        instead: &str,
        why: impl Into<String>,
        cure: impl Into<String>,
    ) -> Row {
        if works { self } else { self.falls_back(instead, why, cure) }
    }

    /// This row; for an undetermined feature, the reason is `unknown`.
    pub(super) fn if_known(self, works: Option<bool>, unknown: &str, [instead, why, cure]: [&str; 3]) -> Row {
        match works {
            None => self.not_shown(unknown),
            Some(works) => self.unless(works, instead, why, cure),
        }
    }

    /// This row, missing and without a fallback.
    pub(super) fn missing(self, instead: &str, why: impl Into<String>, cure: impl Into<String>) -> Row {
        Row { state: State::Missing, ..self.falls_back(instead, why, cure) }
    }

    /// This row, absent for the reason in `message`, which ends with the remedy.
    pub(super) fn absent(self, state: State, instead: &str, message: &str) -> Row {
        let (why, cure) = match message.split_once(CURE_FOLLOWS) {
            Some((why, cure)) => (why, Some(cure.to_owned())),
            None => (message, None),
        };
        Row { cure, state, ..self.falls_back(instead, why, "") }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) vellum_version: &'static str,
    pub(super) kernel: String,
    pub(super) processors: usize,
    pub(super) memory_bytes: u64,
    pub(super) hypervisor: Option<String>,
    pub(super) features: Vec<Row>,
}

impl Report {
    /// The number of features in this state.
    pub(super) fn count(&self, state: State) -> usize {
        self.features.iter().filter(|row| row.state == state).count()
    }
}
