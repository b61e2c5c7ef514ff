//! Certificates for tests, made by openssl.

use std::path::Path;
use std::process::Command;

/// The usual kind of key.
pub(crate) const EC: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
/// Another kind of key.
pub(crate) const RSA: [&str; 2] = ["-newkey", "rsa:2048"];
/// The server of these tests.
pub(crate) const HOST: [&str; 2] = ["-addext", "subjectAltName=IP:127.0.0.1"];

/// Runs openssl in a folder. Returns false, with a message, if it is missing.
pub(crate) fn openssl(folder: &Path, args: &[&str]) -> bool {
    match Command::new("openssl").current_dir(folder).args(args).output() {
        Ok(made) => assert!(made.status.success(), "{args:?}: {}", super::said(&made)),
        Err(why) => {
            vellum_skip::skip(format_args!("openssl cannot be run: {why}"));
            return false;
        }
    }
    true
}

/// Makes a certificate, `NAME.crt`, and its key, `NAME.key`, in an existing folder. The certificate is signed
/// by its own key, unless the options name an authority.
pub(crate) fn certificate(folder: &Path, name: &str, subject: &str, options: &[&[&str]]) -> bool {
    let (key, made) = (format!("{name}.key"), format!("{name}.crt"));
    let request = ["req", "-x509", "-days", "1", "-nodes", "-subj", subject, "-keyout", &key, "-out", &made];
    openssl(folder, &[&request[..], &options.concat()].concat())
}
