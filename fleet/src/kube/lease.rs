//! Leader election among recommenders (`vellum recommend kubernetes`), by Kubernetes' Lease object.
//!
//! The leader holds the lease and renews it. Another recommender takes a lease that was not renewed for its
//! whole duration. Each recommender measures this by its own clock, so clocks need not agree. The leader
//! stops writing if it could not renew the lease for two thirds of the duration. Each write names the version
//! of the lease that was read: if two recommenders take it at once, one gets a conflict.
//!
//! Source: client-go `tools/leaderelection`; the API `coordination.k8s.io/v1`.

use super::{Api, ApiError, Method, is_label, is_name, micros};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

/// The namespace and name of a lease.
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

/// A lease that this process holds or tries to take.
#[derive(Debug)]
pub struct Lease {
    collection: String,
    name: LeaseName,
    holder: String,
    duration: Duration,
    /// The time of the last renewal.
    renewed: Option<Instant>,
    /// Another holder's lease as last seen, and the time since which it has not changed.
    seen: Option<(String, Instant)>,
}

impl Lease {
    /// The usual time for which a lease is held without renewal.
    pub const DURATION: Duration = Duration::from_secs(60);
    /// The interval at which [`Lease::hold`] must be called.
    pub const RENEW: Duration = Duration::from_secs(Self::DURATION.as_secs() / 4);

    /// A lease for `holder`, which must be a unique name; `duration` is usually [`Lease::DURATION`].
    #[must_use]
    pub fn new(name: LeaseName, holder: String, duration: Duration) -> Lease {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", name.namespace);
        Lease { collection, name, holder, duration, renewed: None, seen: None }
    }

    /// Takes or renews the lease if that is due; returns whether it is held.
    ///
    /// # Errors
    /// [`ApiError`] if the server cannot be reached and the lease may have ended.
    pub fn hold(&mut self, api: &Api) -> Result<bool, ApiError> {
        let age = self.renewed.map(|renewed| renewed.elapsed());
        if age.is_some_and(|age| age < self.duration / 3) {
            return Ok(true);
        }
        // Counted from before the request, so others never count the lease as free while it is held here.
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

    /// Ends the lease, so that another recommender can take it at once.
    pub fn give_back(&mut self, api: &Api) {
        if self.renewed.take().is_none() {
            return;
        }
        let path = self.path();
        if let Ok(mut lease) = api.get(&path)
            && lease["spec"]["holderIdentity"] == self.holder.as_str()
        {
            lease["spec"]["holderIdentity"] = json!("");
            // If this fails, the lease ends after its duration.
            let _ = api.write(Method::Put, &path, &lease);
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name.name)
    }

    fn take(&mut self, api: &Api) -> Result<bool, ApiError> {
        let now = micros(SystemTime::now());
        let seconds = self.duration.as_secs().max(1);
        let (mut lease, method, path) = match api.get(&self.path()) {
            Ok(lease) => (lease, Method::Put, self.path()),
            Err(ApiError::Missing(_)) => {
                let metadata = json!({"name": self.name.name, "namespace": self.name.namespace});
                let (version, kind) = ("coordination.k8s.io/v1", "Lease");
                let lease = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}});
                (lease, Method::Post, self.collection.clone())
            }
            Err(why) => return Err(why),
        };
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
        if holder != self.holder {
            if !holder.is_empty() && !self.is_over(spec) {
                return Ok(false);
            }
            let changes = spec["leaseTransitions"].as_u64().map_or(0, |changes| changes.saturating_add(1));
            lease["spec"]["leaseTransitions"] = json!(changes.min(i32::MAX as u64));
            lease["spec"]["acquireTime"] = json!(now);
        }
        lease["spec"]["holderIdentity"] = json!(self.holder);
        lease["spec"]["leaseDurationSeconds"] = json!(seconds);
        lease["spec"]["renewTime"] = json!(now);
        api.write(method, &path, &lease)?;
        self.seen = None;
        Ok(true)
    }

    /// True if another holder's lease has not changed for its whole duration.
    fn is_over(&mut self, spec: &Value) -> bool {
        let said = spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        let lasts = said.unwrap_or(self.duration).clamp(Duration::from_secs(1), Self::DURATION * 10);
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
