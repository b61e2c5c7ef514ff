//! Tests of the classification of cgroups, with paths of real machines and with random paths.

use super::*;
use proptest::prelude::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const UID: &str = "1f3a9c1e-7d54-4c88-9a51-3b2f4d5e6f70";
const UNDERLINED: &str = "1f3a9c1e_7d54_4c88_9a51_3b2f4d5e6f70";
const STATIC: &str = "5e8a1c0d7b2f4e6a9c3d5f7b1a2c4e6d";

/// Paths with the expected place; ID, UID, U_ID and STATIC are replaced by values.
const SHAPES: &[(&str, &str)] = &[
    // Kubernetes, cgroupfs driver: guaranteed pods have no separate level.
    ("kubepods", "above"),
    ("kubepods/burstable", "above"),
    ("kubepods/burstable/podUID", "above"),
    ("kubepods/burstable/podUID/ID", "kubernetes UID ID"),
    ("kubepods/besteffort/podUID/ID", "kubernetes UID ID"),
    ("kubepods/podUID/ID", "kubernetes UID ID"),
    ("kubepods/burstable/podSTATIC/ID", "kubernetes STATIC ID"),
    // Kubernetes, systemd driver.
    ("kubepods.slice", "above"),
    ("kubepods.slice/kubepods-burstable.slice", "above"),
    ("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice", "above"),
    (
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice/cri-containerd-ID.scope",
        "kubernetes UID ID",
    ),
    ("kubepods.slice/kubepods-podU_ID.slice/crio-ID.scope", "kubernetes UID ID"),
    ("kubepods.slice/kubepods-podU_ID.slice/crio-conmon-ID.scope", "helper"),
    (
        "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_ID.slice/docker-ID.scope",
        "kubernetes UID ID",
    ),
    (
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podSTATIC.slice/cri-containerd-ID.scope",
        "kubernetes STATIC ID",
    ),
    // A cluster in a container (kind), and containerd with another driver than the kubelet.
    (
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podU_ID.slice/cri-containerd-ID.scope",
        "kubernetes UID ID",
    ),
    ("kubelet/kubepods/burstable/podUID/ID", "kubernetes UID ID"),
    (
        "system.slice/containerd.service/kubepods-burstable-podU_ID.slice:cri-containerd:ID",
        "kubernetes UID ID",
    ),
    // Containers of one machine.
    ("docker", "above"),
    ("docker/ID", "container docker ID"),
    ("system.slice/docker-ID.scope", "container docker ID"),
    ("machine.slice/libpod-ID.scope", "container libpod ID"),
    ("machine.slice/libpod-conmon-ID.scope", "helper"),
    ("machine.slice/machine-libpod_pod_ID.slice/libpod-ID.scope", "container libpod ID"),
    ("libpod_parent/libpod-ID", "container libpod ID"),
    ("user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope", "container libpod ID"),
    ("crio/crio-ID", "container crio ID"),
    ("ecs/task/ID", "container task ID"),
    ("ID", "container container ID"),
    ("lxc/web", "container lxc web"),
    ("lxc.payload.web", "container lxc web"),
    ("lxc.monitor.web", "helper"),
    ("machine.slice/systemd-nspawn@build.service", "container machine build"),
    ("machine.slice/machine-qemu\\x2d1\\x2dweb.scope", "container machine qemu-1-web"),
    // systemd.
    ("init.scope", "unit init.scope"),
    ("system.slice", "above"),
    ("system.slice/nginx.service", "unit nginx.service"),
    ("system.slice/system-getty.slice/getty@tty1.service", "unit getty@tty1.service"),
    ("system.slice/system-postgresql.slice/postgresql@15-main.service", "unit postgresql@15-main.service"),
    ("system.slice/dev\\x2dloop.service", "unit dev-loop.service"),
    ("user.slice/user-1000.slice/session-3.scope", "unit session-3.scope"),
    ("user.slice/user-1000.slice/user@1000.service", "above"),
    ("user.slice/user-1000.slice/user@1000.service/app.slice/mail.service", "unit mail.service of 1000"),
    // Slurm, versions 1 and 2.
    ("slurm/uid_1001/job_42", "above"),
    ("slurm/uid_1001/job_42/step_0", "slurm 42 0 of 1001"),
    ("slurm_node7/uid_1001/job_42/step_batch", "slurm 42 batch of 1001"),
    ("system.slice/slurmstepd.scope", "above"),
    ("system.slice/slurmstepd.scope/job_42/step_extern", "slurm 42 extern"),
    ("system.slice/node7_slurmstepd.scope/job_42/step_3", "slurm 42 3"),
    ("slurm/uid_x/job_42/step_0", "above"),
    ("elsewhere/job_42/step_0", "above"),
    // Names that resemble known ones.
    ("kubepods/burstable/podnonsense", "above"),
    ("docker/0123456789abcdef", "above"),
    (".service", "above"),
    ("", "above"),
];

fn told(place: &Place) -> String {
    match place {
        Place::Above => "above".to_owned(),
        Place::Helper => "helper".to_owned(),
        Place::Job(Identity::Kubernetes { pod, id }) => format!("kubernetes {pod} {id}"),
        Place::Job(Identity::Container { engine, id }) => format!("container {engine} {id}"),
        Place::Job(Identity::Unit { unit, user: None }) => format!("unit {unit}"),
        Place::Job(Identity::Unit { unit, user: Some(user) }) => format!("unit {unit} of {user}"),
        Place::Job(Identity::Slurm { job, step, user: None }) => format!("slurm {job} {step}"),
        Place::Job(Identity::Slurm { job, step, user: Some(user) }) => {
            format!("slurm {job} {step} of {user}")
        }
        Place::Job(Identity::Other) => "other".to_owned(),
    }
}

#[test]
fn real_paths_are_classified() {
    let put = |text: &str| {
        text.replace("U_ID", UNDERLINED).replace("UID", UID).replace("STATIC", STATIC).replace("ID", ID)
    };
    for (path, expected) in SHAPES {
        assert_eq!(told(&place(&put(path))), put(expected), "{path}");
    }
}

#[test]
fn names_are_short_and_name_the_owner() {
    let name = |path: &str| match place(path) {
        Place::Job(identity) => identity.name(path),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(&format!("docker/{ID}")), "docker/0123456789ab");
    assert_eq!(name(&format!("kubepods/pod{UID}/{ID}")), format!("pod {UID}/0123456789ab"));
    assert_eq!(name("user.slice/user@7.service/x.scope"), "x.scope of user 7");
    assert_eq!(name("slurm/uid_1/job_2/step_batch"), "job 2/step batch");
    assert_eq!(Identity::Other.name("a/b"), "/a/b");
}

proptest! {
    /// Any path has a result, and an id in the result is part of the path.
    #[test]
    fn any_path_can_be_classified(path in "[a-z0-9_.:@/\\\\é-]{0,40}|(/?(kubepods|docker|system|job_1|step_|uid_1|pod|slice|\\\\x2|-pod)[._/a-f0-9-]{0,70}(\\.slice|\\.scope|\\.service)?){0,4}") {
        if let Place::Job(identity) = place(&path) {
            prop_assert!(!identity.name(&path).is_empty());
            if let Identity::Kubernetes { id, .. } = &identity {
                prop_assert!(path.contains(id.as_str()));
            }
        }
    }

    /// A container and its pod are found at any depth.
    #[test]
    fn a_pod_is_found_at_any_depth(id in "[0-9a-f]{64}", uid in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", above in "([a-z]{1,8}/){0,5}") {
        let expected = Place::Job(Identity::Kubernetes { pod: uid.clone(), id: id.clone() });
        prop_assert_eq!(&place(&format!("{above}pod{uid}/{id}")), &expected);
        let underlined = uid.replace('-', "_");
        prop_assert_eq!(&place(&format!("{above}kubepods-burstable-pod{underlined}.slice/cri-containerd-{id}.scope")), &expected);
    }
}
