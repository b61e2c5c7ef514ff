//! Tests of `vellum agent` over https, with certificates from openssl and curl as the client.
//!
//! The agent's `--root` is an ordinary folder, not a cgroup hierarchy: other tests cover the metrics.

use crate::common::certificate::{EC, HOST, RSA, certificate, openssl};
use crate::common::node::{Agent, TOKEN, until};
use crate::common::{self, utf8};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The number of connections that the agent accepts at once.
const CONNECTIONS: usize = 8;
/// curl's exit status for an untrusted certificate.
const UNTRUSTED: i32 = 60;
/// The start of a TLS greeting with a length of 512 bytes.
const HALF_A_GREETING: [u8; 9] = [22, 3, 1, 2, 0, 1, 0, 1, 252];

/// A folder with `one`, `two` (a certificate and its key each), `now` (a link to `one`), and a root without
/// groups.
struct Place(TempDir);

impl Place {
    fn make() -> Option<Place> {
        if !common::has("curl", "Debian: curl") {
            return None;
        }
        let place = Place(tempfile::tempdir().unwrap());
        for (name, kind) in [("one", &EC[..]), ("two", &RSA[..])] {
            fs::create_dir(place.at(name)).unwrap();
            if !certificate(&place.at(name), "tls", "/CN=vellum", &[kind, &HOST]) {
                return None;
            }
        }
        fs::create_dir(place.at("root")).unwrap();
        fs::write(place.at("root/cgroup.procs"), "").unwrap();
        fs::write(place.at("token"), TOKEN).unwrap();
        place.point_to("one");
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces certificate and key at once, as Kubernetes does for a mounted secret.
    fn point_to(&self, name: &str) {
        std::os::unix::fs::symlink(name, self.at("new")).unwrap();
        fs::rename(self.at("new"), self.at("now")).unwrap();
    }

    fn agent(&self, more: &[&str]) -> Agent {
        let (certificate, key) = (self.at("now/tls.crt"), self.at("now/tls.key"));
        Agent::start(&self.at("root"), &[&named(&certificate, &key)[..], more].concat())
    }

    /// The output of curl for `url`, with this certificate as the only trusted one.
    fn curl(&self, trusted: &str, url: &str, more: &[&str]) -> Output {
        let authority = self.at(trusted);
        let mut command = Command::new("curl");
        command
            .env_clear()
            .args(["-sS", "-i", "--noproxy", "*", "--cacert"])
            .arg(authority)
            .args(more)
            .arg(url);
        command.output().unwrap()
    }

    /// curl's exit status; 0 after an answer.
    fn status(&self, trusted: &str, agent: &Agent) -> Option<i32> {
        self.curl(&format!("{trusted}/tls.crt"), &https(agent), &["-f"]).status.code()
    }

    fn is_served(&self, trusted: &str, agent: &Agent) -> bool {
        self.status(trusted, agent) == Some(0)
    }
}

fn https(agent: &Agent) -> String {
    format!("https://{}/metrics", agent.address)
}

#[test]
fn metrics_need_https_and_token() {
    let _turn = crate::common::beside();
    let Some(place) = Place::make() else { return };
    let token = place.at("token");
    let agent = place.agent(&["--token-file", common::text(&token)]);
    let header = format!("Authorization: Bearer {TOKEN}");
    for more in [&["--tlsv1.3"][..], &["--tls-max", "1.2"], &["--http1.1"]] {
        let got = place.curl("one/tls.crt", &https(&agent), &[&["-H", &header], more].concat());
        let page = utf8(&got.stdout);
        assert!(got.status.success() && page.starts_with("HTTP/1.1 200 "), "{more:?}: {got:?}");
        assert!(page.contains("vellum_build_info{") && page.ends_with("# EOF\n"), "{page}");
    }
    let without = utf8(&place.curl("one/tls.crt", &https(&agent), &[]).stdout);
    assert!(without.starts_with("HTTP/1.1 401 ") && !without.contains("vellum_"), "{without}");
    let other = place.curl("two/tls.crt", &https(&agent), &["-H", &header]);
    assert_eq!((other.status.code(), utf8(&other.stdout).as_str()), (Some(UNTRUSTED), ""), "{other:?}");
    let plain = format!("http://{}/metrics", agent.address);
    let plain = utf8(&place.curl("one/tls.crt", &plain, &["-H", &header]).stdout);
    assert!(plain.starts_with("HTTP/1.1 400 ") && plain.contains("https"), "{plain}");
    assert!(!plain.contains("vellum_") && !plain.contains(TOKEN), "{plain}");
}

#[test]
fn renewed_certificate_needs_no_restart() {
    let _turn = crate::common::beside();
    let Some(place) = Place::make() else { return };
    let agent = place.agent(&[]);
    let of_both = || ["one", "two"].map(|trusted| place.status(trusted, &agent));
    assert_eq!(of_both(), [Some(0), Some(UNTRUSTED)]);
    place.point_to("two");
    assert_eq!(of_both(), [Some(UNTRUSTED), Some(0)]);
    // Replaced file by file; while the two do not match or are invalid, the earlier pair is served.
    let before = fs::read(place.at("two/tls.crt")).unwrap();
    let said = |words: &str| {
        until("it is said", || agent.lines.try_iter().find(|line| line.contains(words)));
    };
    fs::write(place.at("before.crt"), &before).unwrap();
    let strange = fs::read(place.at("one/tls.key")).unwrap();
    for (file, bytes, words) in [
        ("two/tls.key", &strange[..], "is not the key of the first certificate"),
        ("two/tls.crt", &before[..before.len() / 2], "no valid certificate"),
    ] {
        fs::write(place.at(file), bytes).unwrap();
        let got = place.curl("before.crt", &https(&agent), &["-f"]);
        assert!(got.status.success() && utf8(&got.stdout).ends_with("# EOF\n"), "{file}: {got:?}");
        said(words);
    }
    fs::copy(place.at("one/tls.crt"), place.at("two/tls.crt")).unwrap();
    assert!(place.is_served("one", &agent));
    said("the new certificate is in force");
    // A missing folder can come back later.
    fs::remove_file(place.at("now")).unwrap();
    assert!(place.is_served("one", &agent));
    said("No such file");
}

/// True if the agent still waits for this peer.
fn is_waited_for(mut peer: &TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    matches!(peer.read(&mut [0; 64]), Err(why) if why.kind() == ErrorKind::WouldBlock)
}

#[test]
fn unfinished_handshake_does_not_block_others() {
    let _turn = crate::common::beside();
    let Some(place) = Place::make() else { return };
    let agent = place.agent(&[]);
    let slow = |count: usize| -> Vec<TcpStream> {
        let one = |number: usize| {
            let mut peer = TcpStream::connect(&agent.address).unwrap();
            // Some send nothing at all.
            if number.is_multiple_of(2) {
                peer.write_all(&HALF_A_GREETING).unwrap();
            }
            peer
        };
        (0..count).map(one).collect()
    };
    until("others are answered while a handshake is waited for", || {
        let peers = slow(CONNECTIONS - 1);
        (place.is_served("one", &agent) && peers.iter().all(is_waited_for)).then_some(())
    });
    let peers = slow(2 * CONNECTIONS);
    until("no handshake is waited for without end", || (!peers.iter().any(is_waited_for)).then_some(()));
    until("and then others are answered", || place.is_served("one", &agent).then_some(()));
    // Invalid data ends a handshake at once.
    let mut nonsense = TcpStream::connect(&agent.address).unwrap();
    nonsense.write_all(&[&[22][..], &[255; 100]].concat()).unwrap();
    until("nonsense is not waited for", || (!is_waited_for(&nonsense)).then_some(()));
    assert!(place.is_served("one", &agent));
}

/// The options for these two files.
fn named<'a>(certificate: &'a Path, key: &'a Path) -> [&'a str; 4] {
    ["--tls-certificate", common::text(certificate), "--tls-key", common::text(key)]
}

#[test]
fn mismatched_key_fails_before_serving() {
    let _turn = crate::common::beside();
    let Some(place) = Place::make() else { return };
    let (one, two) = (place.at("one/tls.crt"), place.at("two/tls.key"));
    let (locked, broken, odd) = (place.at("locked"), place.at("broken"), place.at("odd"));
    let folder = place.0.path();
    openssl(folder, &["pkey", "-aes256", "-passout", "pass:a", "-in", "one/tls.key", "-out", "locked"]);
    openssl(folder, &["genpkey", "-algorithm", "ed448", "-out", "odd"]);
    fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let key = place.at("one/tls.key");
    for (options, words) in [
        (named(&one, &two), "it is not the key of the first certificate"),
        (named(&one, &locked), "without a passphrase"),
        (named(&one, &one), "there is no private key in it"),
        (named(&key, &key), "no valid certificate"),
        (named(&broken, &key), "give a certificate of version 3"),
        (named(&one, &odd), "with a key of RSA, ECDSA"),
    ] {
        let root = place.at("root");
        common::fails(&[&["agent", "--root", common::text(&root)], &options[..]].concat(), words);
    }
}
