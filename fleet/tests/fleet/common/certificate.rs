//! Certificates for tests, made by openssl.

use std::path::Path;
use std::process::Command;

/// The usual kind of key.
pub(crate) const EC: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
/// Another kind of key.
pub(crate) const RSA: [&str; 2] = ["-newkey", "rsa:2048"];

/// Makes a self-signed certificate for 127.0.0.1, `tls.crt`, and its key, `tls.key`, in an existing folder.
/// Returns false, with a message, if openssl is missing.
pub(crate) fn certificate(folder: &Path, kind: &[&str]) -> bool {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["req", "-x509", "-days", "1", "-nodes", "-subj", "/CN=vellum"]);
    command.args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "tls.key", "-out", "tls.crt"]);
    match command.args(kind).output() {
        Ok(made) => {
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            true
        }
        Err(why) => {
            vellum_skip::skip(format_args!("openssl cannot be run: {why}"));
            false
        }
    }
}
