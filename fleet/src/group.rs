//! Classifies a cgroup by its path alone: container, systemd unit, step of a Slurm job, or a level above
//! these.
//!
//! ```text
//! kubepods/burstable/podUID/ID                                            Kubernetes, cgroupfs driver
//! kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_I_D.slice/cri-containerd-ID.scope
//!                                                                         Kubernetes, systemd driver
//! docker/ID   system.slice/docker-ID.scope   machine.slice/libpod-ID.scope   containers without Kubernetes
//! system.slice/nginx.service   user.slice/…/user@1000.service/app.slice/x.service   systemd
//! slurm/uid_N/job_N/step_N   system.slice/slurmstepd.scope/job_N/step_N   Slurm, cgroup versions 1 and 2
//! ```
//!
//! The functions are pure: they open no file and accept any text. Paths are relative to the hierarchy's
//! root and have no slash at either end. Both cgroup versions have the same names, except those of Slurm.
//!
//! Invariants: a cgroup below a job's cgroup belongs to that job. A cgroup whose name has no known form is
//! a level to search below ([`Place::Above`]), never an error.
//!
//! Sources: kubelet `cgroup_manager_linux.go` (names of both drivers), systemd `unit-name.c` (escapes),
//! Slurm `cgroup_v1.c`, `cgroup_v2.c` (levels).

/// The number of digits of a container's id.
const ID_DIGITS: usize = 64;
/// The number of digits in names, as in container tools.
const ID_SHOWN: usize = 12;

/// The identity of a job, from its group's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A container of the pod with this UID.
    Kubernetes {
        /// The pod's UID, with dashes; a static pod's has none.
        pod: String,
        /// The container's id.
        id: String,
    },
    /// A container.
    Container {
        /// The engine, if the path names it: `docker`, `libpod`, `crio`, `lxc`, `machine`, …
        engine: String,
        /// The id, or else the name.
        id: String,
    },
    /// A systemd unit.
    Unit {
        /// The unit's name.
        unit: String,
        /// The user whose manager runs the unit; `None` for the machine's manager.
        user: Option<String>,
    },
    /// A step of a Slurm job.
    Slurm {
        /// The job's number.
        job: String,
        /// The step: a number, `batch`, `extern`, `interactive`.
        step: String,
        /// The user's number, if the path contains it (version 1).
        user: Option<String>,
    },
    /// A group of unknown shape, without groups below it.
    Other,
}

impl Identity {
    /// The kinds of jobs, the values of the label `kind`.
    pub(crate) const KINDS: [&str; 5] = ["kubernetes", "container", "unit", "slurm", "other"];

    /// The job's kind.
    pub(crate) fn kind(&self) -> &'static str {
        Self::KINDS[match self {
            Identity::Kubernetes { .. } => 0,
            Identity::Container { .. } => 1,
            Identity::Unit { .. } => 2,
            Identity::Slurm { .. } => 3,
            Identity::Other => 4,
        }]
    }

    /// A readable name, unless a list of pods gives a better one. `path` is the group's.
    #[must_use]
    pub fn name(&self, path: &str) -> String {
        match self {
            Identity::Kubernetes { pod, id } => format!("pod {pod}/{}", short(id)),
            Identity::Container { engine, id } => format!("{engine}/{}", short(id)),
            Identity::Unit { unit, user: None } => unit.clone(),
            Identity::Unit { unit, user: Some(user) } => format!("{unit} of user {user}"),
            Identity::Slurm { job, step, .. } => format!("job {job}/step {step}"),
            Identity::Other => format!("/{path}"),
        }
    }
}

/// The shortened form of an id; a name is shown whole.
#[must_use]
pub(crate) fn short(id: &str) -> &str {
    if is_id(id) { &id[..ID_SHOWN] } else { id }
}

/// The classification of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A job.
    Job(Identity),
    /// A level, which may have jobs below it.
    Above,
    /// A process that supervises a container; neither a job nor a level.
    Helper,
}

/// Classifies the group at `path`.
#[must_use]
pub fn place(path: &str) -> Place {
    let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(step) = last.strip_prefix("step_").and_then(|step| slurm(above, step)) {
        return Place::Job(step);
    }
    if is_helper(last) {
        return Place::Helper;
    }
    if let Some((engine, id)) = container(last) {
        // Containerd may use systemd's names without systemd; then the pod's name comes first.
        let pod = above.rsplit('/').find_map(pod_uid).or_else(|| last.split(':').next().and_then(pod_uid));
        return Place::Job(match pod {
            Some(pod) => Identity::Kubernetes { pod, id },
            None => {
                let parent = above.rsplit('/').next().filter(|name| !name.is_empty());
                let engine = if engine.is_empty() { parent.unwrap_or("container") } else { engine };
                Identity::Container { engine: engine.to_owned(), id }
            }
        });
    }
    if let Some(id) = machine(above, last) {
        return Place::Job(id);
    }
    unit(above, last).map_or(Place::Above, Place::Job)
}

/// The id in the name of a container's group, with the engine if it is named.
fn container(name: &str) -> Option<(&str, String)> {
    let bare = name.strip_suffix(".scope").unwrap_or(name);
    // POD:cri-containerd:ID, or ENGINE-ID, or ID.
    let (front, id) = match bare.rsplit_once(':') {
        Some((front, id)) => (front.rsplit_once(':').map_or("", |(_, engine)| engine), id),
        None => bare.rsplit_once('-').unwrap_or(("", bare)),
    };
    is_id(id).then(|| (front.strip_prefix("cri-").unwrap_or(front), id.to_owned()))
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Conmon and similar programs, of which each container has one.
fn is_helper(name: &str) -> bool {
    ["crio-conmon-", "libpod-conmon-", "lxc.monitor", "conmon-"].iter().any(|front| name.starts_with(front))
}

/// The UID in the name of a pod's group: `podUID`, or `…-podU_I_D.slice`, where systemd replaces dashes by
/// underscores.
fn pod_uid(name: &str) -> Option<String> {
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => slice.rsplit_once("-pod")?.1,
        None => name.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let digits = uid.bytes().filter(|digit| *digit != b'-').all(|digit| digit.is_ascii_hexdigit());
    (digits && matches!(uid.len(), 32 | 36)).then_some(uid)
}

/// A step, below its job's group.
fn slurm(above: &str, step: &str) -> Option<Identity> {
    let mut levels = above.rsplit('/');
    let job = levels.next()?.strip_prefix("job_").filter(|job| is_number(job))?;
    let parent = levels.next()?;
    let user = parent.strip_prefix("uid_").filter(|user| is_number(user));
    if user.is_none() && !parent.ends_with("slurmstepd.scope") {
        return None;
    }
    Some(Identity::Slurm { job: job.to_owned(), step: step.to_owned(), user: user.map(str::to_owned) })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Machines and system containers, which have names and no ids.
fn machine(above: &str, last: &str) -> Option<Identity> {
    let is = |engine: &str, name: &str| {
        Some(Identity::Container { engine: engine.to_owned(), id: unescaped(name) })
            .filter(|_| !name.is_empty())
    };
    if let Some(name) = last.strip_prefix("lxc.payload.") {
        return is("lxc", name);
    }
    if above == "lxc" || above.ends_with("/lxc") {
        return is("lxc", last);
    }
    if above == "machine.slice" {
        let nspawn = last.strip_prefix("systemd-nspawn@").and_then(|name| name.strip_suffix(".service"));
        let registered = last.strip_prefix("machine-").and_then(|name| name.strip_suffix(".scope"));
        return nspawn.or(registered).and_then(|name| is("machine", name));
    }
    None
}

/// A systemd unit. A user's manager is not a unit but a level above the user's units.
fn unit(above: &str, last: &str) -> Option<Identity> {
    let name = last.strip_suffix(".service").or_else(|| last.strip_suffix(".scope"))?;
    if name.is_empty() || manager(last).is_some() || last.ends_with("slurmstepd.scope") {
        return None;
    }
    let user = above.split('/').find_map(manager).map(str::to_owned);
    Some(Identity::Unit { unit: unescaped(last), user })
}

/// The user whose manager has this name.
fn manager(name: &str) -> Option<&str> {
    name.strip_prefix("user@")?.strip_suffix(".service").filter(|user| is_number(user))
}

/// Replaces systemd's `\x2d` and the like by the characters, if they are visible.
fn unescaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 2..at + 4);
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(u8::is_ascii_graphic) {
            Some(code) => {
                out.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                out.push_str("\\x");
                rest = &rest[at + 2..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests;
