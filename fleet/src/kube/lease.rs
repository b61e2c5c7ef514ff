//! Leader election among several recommenders, by a Lease of `coordination.k8s.io/v1`.
//!
//! The holder renews the lease. Another recommender takes it after it has not changed for its whole duration,
//! measured by that recommender's own clock, so clocks need not agree. The holder stops writing if it could
//! not renew the lease for two thirds of the duration. Each write names the version that was read: if two
//! recommenders take the lease at once, one gets a conflict.
//!
//! Source: client-go `tools/leaderelection`.

use super::{Api, ApiError, is_label, is_name, micros};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

/// For how long a lease is held without being renewed.
const DURATION: Duration = Duration::from_secs(60);

/// Where a lease is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName {
    namespace: String,
    name: String,
}

impl std::str::FromStr for LeaseName {
    type Err = String;

    fn from_str(text: &str) -> Result<LeaseName, String> {
        match text.split_once('/') {
            Some((namespace, name)) if is_label(namespace) && is_name(name) => {
                Ok(LeaseName { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("write NAMESPACE/NAME, such as kube-system/vellum-recommender".to_owned()),
        }
    }
}

/// A lease, held or wanted.
#[derive(Debug)]
pub struct Lease {
    collection: String,
    name: LeaseName,
    holder: String,
    duration: Duration,
    /// When it was renewed last.
    renewed: Option<Instant>,
    /// What was seen of another's, and since when.
    seen: Option<(String, Instant)>,
}

impl Lease {
    /// How often [`Lease::hold`] is to be called.
    pub const RENEW: Duration = Duration::from_secs(DURATION.as_secs() / 4);

    /// A lease that is wanted by `holder`, whose name nobody else has.
    #[must_use]
    pub fn new(name: LeaseName, holder: String) -> Lease {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", name.namespace);
        Lease { collection, name, holder, duration: DURATION, renewed: None, seen: None }
    }

    /// The same with another duration.
    #[must_use]
    pub fn lasting(self, duration: Duration) -> Lease {
        Lease { duration, ..self }
    }

    /// Whether it is held, after it was renewed if that is due.
    ///
    /// # Errors
    /// [`ApiError`] if that cannot be found out, and it is no longer held for sure.
    pub fn hold(&mut self, api: &Api) -> Result<bool, ApiError> {
        let age = self.renewed.map(|renewed| renewed.elapsed());
        if age.is_some_and(|age| age < self.duration / 3) {
            return Ok(true);
        }
        // Counted from before the request: what it takes is not held longer than others think.
        let began = Instant::now();
        match self.take(api) {
            Ok(true) => {
                self.renewed = Some(began);
                Ok(began.elapsed() < self.duration * 2 / 3)
            }
            Ok(false) | Err(ApiError::Conflict(_)) => {
                self.renewed = None;
                Ok(false)
            }
            Err(_) if age.is_some_and(|age| age + began.elapsed() < self.duration * 2 / 3) => Ok(true),
            Err(why) => Err(why),
        }
    }

    /// Lets others have it at once.
    pub fn give_back(&mut self, api: &Api) {
        if self.renewed.take().is_none() {
            return;
        }
        let path = self.path();
        if let Ok(mut lease) = api.get(&path)
            && lease["spec"]["holderIdentity"] == self.holder.as_str()
        {
            lease["spec"]["holderIdentity"] = json!("");
            // Where that fails it ends by itself.
            let _ = api.replace(&path, &lease);
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name.name)
    }

    fn take(&mut self, api: &Api) -> Result<bool, ApiError> {
        let now = micros(SystemTime::now());
        let seconds = self.duration.as_secs().max(1);
        let mut lease = match api.get(&self.path()) {
            Ok(lease) => lease,
            Err(ApiError::Missing(_)) => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self.name.name, "namespace": self.name.namespace},
                    "spec": {
                        "holderIdentity": self.holder, "leaseDurationSeconds": seconds,
                        "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
                    },
                });
                return api.create(&self.collection, &lease).map(|_| true);
            }
            Err(why) => return Err(why),
        };
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
        if holder != self.holder {
            if !holder.is_empty() && !self.is_over(spec) {
                return Ok(false);
            }
            let changes = spec["leaseTransitions"].as_u64().unwrap_or_default().saturating_add(1);
            lease["spec"]["leaseTransitions"] = json!(changes.min(i32::MAX as u64));
            lease["spec"]["acquireTime"] = json!(now);
        }
        lease["spec"]["holderIdentity"] = json!(self.holder);
        lease["spec"]["leaseDurationSeconds"] = json!(seconds);
        lease["spec"]["renewTime"] = json!(now);
        api.replace(&self.path(), &lease)?;
        self.seen = None;
        Ok(true)
    }

    /// Whether another's lease has not changed for as long as it says that it lasts.
    fn is_over(&mut self, spec: &Value) -> bool {
        let said = spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        let lasts = said.unwrap_or(self.duration).clamp(Duration::from_secs(1), DURATION * 10);
        let looks = format!("{} {}", spec["holderIdentity"], spec["renewTime"]);
        match &self.seen {
            Some((seen, since)) if *seen == looks => since.elapsed() > lasts,
            _ => {
                self.seen = Some((looks, Instant::now()));
                false
            }
        }
    }
}
