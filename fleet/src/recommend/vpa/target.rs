//! Finds the pods of a workload by their names, as controllers form them.
//!
//! Labels exist only for running pods. A workload's history is mostly that of ended pods. Only their names
//! remain. Pods are therefore always found by name, without permission to read pods or workloads. In the
//! diagram, `xxxxx` is a random suffix, HASH a hash of the template, MINUTES the scheduled time in minutes.
//!
//! ```text
//! Deployment, Rollout   NAME-HASH-xxxxx      StatefulSet           NAME-0
//! ReplicaSet, DaemonSet,                     Job (indexed)         NAME-0-xxxxx
//! ReplicationController, Job  NAME-xxxxx     CronJob               NAME-MINUTES-xxxxx, NAME-MINUTES-0-xxxxx
//! ```
//!
//! Two workloads of a namespace can be confused in two cases only. Either one name is the other plus a hash
//! (`web` and `web-5d4f8`), or both names are equal and their kinds form names of pods alike.
//!
//! Source: Kubernetes, `k8s.io/apimachinery/pkg/util/rand` (alphabets), `apiserver/pkg/storage/names`
//! (five characters; longer names are cut to make room).

use super::super::history::{Containers, Pods};

const RANDOM_LENGTH: usize = 5;
const HASH_MAX: usize = 10;
/// Longer names of controllers are cut off in the names of their pods.
const FRONT_MAX: usize = 58;
/// The maximum digits of an ordinal, and of a CronJob's minutes.
const ORDINAL_MAX: usize = 10;

/// The pattern of the names of a workload's pods.
#[derive(Debug)]
pub(super) struct Target {
    front: String,
    tails: &'static [&'static [Part]],
}

/// A part of a name: a template's hash, a random suffix, or a number.
type Part = fn(&str) -> bool;

const HASH: Part = |word| word.len() <= HASH_MAX && is_of("456789bcdf", word);
const RANDOM: Part = |word| word.len() == RANDOM_LENGTH && is_of("bcdfghjklmnpqrstvwxz2456789", word);
const ORDINAL: Part = |word| word.len() <= ORDINAL_MAX && is_of("0123456789", word);

fn is_of(alphabet: &str, word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| alphabet.contains(c))
}

impl Target {
    /// The pattern for the workload of this kind and name, or the reason for which none exists.
    pub(super) fn new(kind: &str, name: &str) -> Result<Target, String> {
        let (tails, more): (&[&[Part]], usize) = match kind {
            "Deployment" | "Rollout" => (&[&[HASH, RANDOM]], HASH_MAX + 1),
            "StatefulSet" => (&[&[ORDINAL]], 0),
            "ReplicaSet" | "DaemonSet" | "ReplicationController" => (&[&[RANDOM]], 0),
            "Job" => (&[&[RANDOM], &[ORDINAL, RANDOM]], ORDINAL_MAX + 1),
            "CronJob" => (&[&[ORDINAL, RANDOM], &[ORDINAL, ORDINAL, RANDOM]], 2 * (ORDINAL_MAX + 1)),
            other => return Err(format!("the names of pods of a {other} are unknown")),
        };
        if name.len() + 1 + more > FRONT_MAX && kind != "StatefulSet" {
            return Err("its name is so long that those of its pods may be cut off".to_owned());
        }
        Ok(Target { front: format!("{name}-"), tails })
    }

    fn is(&self, pod: &str) -> bool {
        let Some(tail) = pod.strip_prefix(&self.front) else { return false };
        self.tails.iter().any(|parts| {
            let mut words = tail.split('-');
            parts.iter().all(|part| words.next().is_some_and(part)) && words.next().is_none()
        })
    }

    /// The histories of the workload's pods.
    pub(super) fn of<'a>(&'a self, pods: &'a Pods) -> impl Iterator<Item = &'a Containers> + 'a {
        pods.range(self.front.clone()..)
            .take_while(|(pod, _)| pod.starts_with(&self.front))
            .filter(|(pod, _)| self.is(pod))
            .map(|(_, containers)| containers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_matched_by_name() {
        let is = |kind: &str, name: &str, pod: &str| Target::new(kind, name).unwrap().is(pod);
        for (kind, pod) in [
            ("Deployment", "web-5d4f8b9c6-x2k4z"),
            ("Deployment", "web-7bcd-x2k4z"),
            ("StatefulSet", "web-0"),
            ("StatefulSet", "web-117"),
            ("DaemonSet", "web-x2k4z"),
            ("Job", "web-x2k4z"),
            ("Job", "web-3-x2k4z"),
            ("CronJob", "web-28394410-x2k4z"),
        ] {
            assert!(is(kind, "web", pod), "{kind} {pod}");
            assert!(!is(kind, "we", pod) && !is(kind, "web-5", pod), "{kind} {pod}");
        }
        for (kind, pod) in [
            ("Deployment", "web-x2k4z"),
            ("Deployment", "web-admin-5d4f8b9c6-x2k4z"),
            ("Deployment", "web-5d4f8b9c6-x2k4"),
            ("Deployment", "web-hello-x2k4z"),
            ("StatefulSet", "web-x2k4z"),
            ("StatefulSet", "web-"),
            ("DaemonSet", "web-aeiou"),
            ("DaemonSet", "web"),
            ("CronJob", "web-x2k4z"),
        ] {
            assert!(!is(kind, "web", pod), "{kind} {pod}");
        }
        assert!(Target::new("Node", "x").unwrap_err().contains("Node"));
        assert!(Target::new("Deployment", &"x".repeat(50)).unwrap_err().contains("long"));
        assert!(Target::new("Deployment", &"x".repeat(46)).is_ok());
    }

    #[test]
    fn target_collects_only_matching_pods() {
        let mut pods = Pods::new();
        for pod in ["a", "web", "web-0", "web-1", "web-10", "web-5d4f8b9c6-x2k4z", "web-x", "wec-0"] {
            pods.entry(pod.to_owned()).or_default();
        }
        let target = Target::new("StatefulSet", "web").unwrap();
        assert_eq!(target.of(&pods).count(), 3);
    }
}
