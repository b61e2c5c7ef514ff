//! Computes the status that an object should have, and the patch that sets it. The functions are pure.
//!
//! Invariants: a container without a new recommendation keeps its earlier numbers. An object without any
//! numbers has a condition with the reason. Conditions of other programs do not change.

use super::super::decide::Rules;
use super::super::history::{Containers, Memory};
use super::numbers::{Numbers, numbers};
use super::object::Object;
use super::target::Target;
use crate::kube::seconds;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The type of the condition for the existence of numbers.
const PROVIDED: &str = "RecommendationProvided";
/// The maximum length of a condition's message.
const MESSAGE_MAX: usize = 1000;
/// The maximum number of containers of an object.
const CONTAINERS_MAX: usize = 100;

/// The status to write and the lines to print.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The numbers of each container.
    numbers: BTreeMap<String, Numbers>,
    /// If there are no numbers, the reason as one word and as text.
    trouble: Option<(&'static str, String)>,
    /// A line for each container.
    pub(super) lines: Vec<String>,
}

/// Computes the status that an object should have.
pub(super) fn wanted(object: &Object, memory: &Memory, rules: &Rules) -> Wanted {
    let mut wanted = Wanted { numbers: BTreeMap::new(), trouble: None, lines: Vec::new() };
    let before = object.before();
    let target = object.target().ok_or_else(|| "it has no targetRef".to_owned());
    let target = match target.and_then(|target| Target::new(&target.kind, &target.name)) {
        Ok(target) => target,
        Err(why) => return wanted.without("TargetNotSupported", why, before),
    };
    let pods = memory.namespaces.get(&object.metadata.namespace);
    let mut containers = Containers::new();
    for pod in pods.iter().flat_map(|pods| target.of(pods)) {
        for (name, known) in pod {
            let all = containers.entry(name.clone()).or_default();
            *all = all.and(known);
        }
    }
    if containers.is_empty() {
        let why = "Prometheus has no series of its pods' containers".to_owned();
        return wanted.without("NothingRemembered", why, before);
    }
    if containers.len() > CONTAINERS_MAX {
        let why = format!("its pods had {} containers, more than {CONTAINERS_MAX}", containers.len());
        return wanted.without("TooManyContainers", why, before);
    }
    let mut reasons = Vec::new();
    for (name, known) in &containers {
        let allowed = match object.allowed(name) {
            Ok(allowed) => allowed,
            Err(why) => {
                wanted.lines.push(format!("{name}: left alone: {why}"));
                reasons.push(format!("{name}: {why}"));
                continue;
            }
        };
        let old = before.get(name);
        match numbers(known, allowed, old, rules) {
            Ok((now, why)) => {
                wanted.lines.push(format!("{name}: {}: {why}", said(&now)));
                wanted.numbers.insert(name.clone(), now);
            }
            Err(why) => {
                let kept = old.map_or(String::new(), |_| " (its numbers of before stay)".to_owned());
                wanted.lines.push(format!("{name}: left alone: {why}{kept}"));
                reasons.push(format!("{name}: {why}"));
                wanted.numbers.extend(old.map(|old| (name.clone(), *old)));
            }
        }
    }
    if wanted.numbers.is_empty() {
        wanted.trouble = Some(("TooLittleKnown", reasons.join("; ")));
    }
    wanted
}

fn said(numbers: &Numbers) -> String {
    let mib = |bytes: u64| format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20));
    let Numbers { target, lower, upper, .. } = *numbers;
    format!("memory {} (at least {}, at most {})", mib(target), mib(lower), mib(upper))
}

impl Wanted {
    /// Keeps the earlier numbers, for this reason.
    fn without(mut self, word: &'static str, why: String, before: BTreeMap<String, Numbers>) -> Wanted {
        let kept = if before.is_empty() { "" } else { " (its numbers of before stay)" };
        self.lines.push(format!("left alone: {why}{kept}"));
        if before.is_empty() {
            self.trouble = Some((word, why));
        }
        self.numbers = before;
        self
    }

    /// The patch to this status; `None` if the object already has it.
    pub(super) fn patch(&self, object: &Object, now: SystemTime) -> Option<Value> {
        let entries: Vec<Value> = self.numbers.iter().map(|(name, numbers)| entry(name, numbers)).collect();
        let same_numbers = entries == object.entries();
        let conditions =
            object.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let (is_provided, word, message) = match &self.trouble {
            None => ("True", "Remembered", String::new()),
            Some((word, why)) => ("False", *word, why.chars().take(MESSAGE_MAX).collect()),
        };
        let ours = conditions.iter().find(|condition| condition["type"] == PROVIDED);
        let same_state = ours.is_some_and(|ours| ours["status"] == is_provided);
        if same_numbers && same_state && ours.is_some_and(|ours| ours["reason"] == word) {
            return None;
        }
        let since = ours.filter(|_| same_state).and_then(|ours| ours["lastTransitionTime"].as_str());
        let since = since.map_or_else(|| seconds(now), str::to_owned);
        let mut conditions: Vec<Value> =
            conditions.into_iter().filter(|condition| condition["type"] != PROVIDED).collect();
        conditions.push(json!({
            "type": PROVIDED, "status": is_provided, "reason": word, "message": message,
            "lastTransitionTime": since,
        }));
        let mut status = json!({"conditions": conditions});
        if !same_numbers {
            status["recommendation"] = match entries.is_empty() {
                true => Value::Null,
                false => json!({"containerRecommendations": entries}),
            };
        }
        Some(json!({"metadata": {"resourceVersion": object.metadata.resource_version}, "status": status}))
    }
}

fn entry(name: &str, numbers: &Numbers) -> Value {
    let memory = |bytes: u64| json!({"memory": bytes.to_string()});
    json!({
        "containerName": name,
        "target": memory(numbers.target),
        "lowerBound": memory(numbers.lower),
        "upperBound": memory(numbers.upper),
        "uncappedTarget": memory(numbers.uncapped),
    })
}
