//! The TLS certificate and key under which metrics are served.
//!
//! Both files are read again for each connection and compared with the earlier contents: to renew a
//! certificate, it is enough to replace the files. For a moment one file may be new and the other old. Until
//! certificate and key match again, the last matching pair stays in force, and [`TlsFiles::trouble`] gives
//! the reason. A new certificate ends the resumption of older sessions.
//!
//! Invariant: no key is ever printed.

use crate::Error;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use vellum_governor::{Peer, Stream, Tls};

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";
const FILE_MAX: u64 = 1 << 20;
/// The application protocol (RFC 7301).
const PROTOCOL: &[u8] = b"http/1.1";

/// A file with a certificate, and a file with its key.
#[derive(Clone)]
pub struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

/// The pair in force.
struct Kept {
    pem: Pem,
    config: Arc<ServerConfig>,
    /// The reason for which the files' current contents are not in force.
    trouble: Option<String>,
}

/// The contents of both files.
#[derive(PartialEq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl std::fmt::Debug for TlsFiles {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "TlsFiles({}, {})", self.certificate.display(), self.key.display())
    }
}

impl TlsFiles {
    /// Opens the files at these paths, with a certificate and its key.
    ///
    /// # Errors
    /// If a file cannot be read, has no certificate or key, or the two do not match.
    pub fn open(certificate: &Path, key: &Path) -> Result<TlsFiles, Error> {
        let pem = Pem::read(certificate, key)?;
        let config = pem.config(certificate, key)?;
        let kept = Arc::new(Mutex::new(Kept { pem, config, trouble: None }));
        Ok(TlsFiles { certificate: certificate.to_owned(), key: key.to_owned(), kept })
    }

    /// The reason for which the earlier pair is in force and not the files' contents at the last connection.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    fn config(&self) -> Arc<ServerConfig> {
        let TlsFiles { certificate, key, kept } = self;
        // Read without the lock, so that a slow disk does not delay other connections.
        let read = Pem::read(certificate, key);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = match read {
            Ok(pem) if pem == kept.pem => Ok(None),
            Ok(pem) => pem.config(certificate, key).map(|config| Some((pem, config))),
            Err(why) => Err(why),
        };
        kept.trouble = changed.as_ref().err().map(Error::to_string);
        if let Ok(Some((pem, config))) = changed {
            (kept.pem, kept.config) = (pem, config);
        }
        Arc::clone(&kept.config)
    }
}

impl Tls for TlsFiles {
    fn serve(&self, peer: Peer, answer: &mut dyn FnMut(&mut dyn Stream) -> io::Result<()>) -> io::Result<()> {
        let connection = ServerConnection::new(self.config()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, peer);
        answer(&mut stream)?;
        // The close notification shows the peer that nothing was cut off.
        stream.conn.send_close_notify();
        stream.flush()
    }
}

impl Pem {
    fn read(certificate: &Path, key: &Path) -> Result<Pem, Error> {
        let certificate = read(CERTIFICATE, certificate)?;
        Ok(Pem { certificate, key: read(KEY, key)? })
    }

    fn config(&self, certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<_, _>>().unwrap_or_default();
        if chain.is_empty() {
            let way_out = "give the server's certificate and its chain in PEM form";
            return Err(Error::option(CERTIFICATE, certificate, "no valid certificate", way_out));
        }
        let secret = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| {
            let way_out = "give one in the form of PEM, without a passphrase";
            Error::option(KEY, key, "there is no private key in it that is understood", way_out)
        })?;
        let made = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
        match made {
            Ok(mut config) => {
                config.alpn_protocols = vec![PROTOCOL.to_vec()];
                Ok(Arc::new(config))
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                let why = format!("it is not the key of the first certificate in {}", certificate.display());
                Err(Error::option(KEY, key, why, "give the two that belong together"))
            }
            Err(why) => {
                let both = format!("{CERTIFICATE} {}, {KEY}", certificate.display());
                let kinds = "a certificate of version 3 with a key of RSA, ECDSA (P-256, P-384) or Ed25519";
                Err(Error::option(&both, key, why, &format!("give {kinds}")))
            }
        }
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes));
    let read = read.map_err(|why| Error::option(option, path, why, "give a file (PEM) that can be read"));
    read.map(|_| bytes)
}
