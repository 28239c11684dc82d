//! Certificates and keys from PEM files and from the operating system.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
};

use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};

use super::refused;
use crate::error::Error;

/// The certificates of a file, at least one; `option` is the name that the user knows.
pub(super) fn certificates(
    option: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |e: &dyn std::fmt::Display| {
        refused(
            format!("{option} {} cannot be read: {e}", path.display()),
            "It must be a PEM file of certificates.",
        )
    };
    let file = File::open(path).map_err(|e| failed(&e))?;
    let read: Result<Vec<_>, pem::Error> = CertificateDer::pem_reader_iter(file).collect();
    let certificates = read.map_err(|e| failed(&e))?;
    if certificates.is_empty() {
        return Err(failed(&"it has no certificate"));
    }
    Ok(certificates)
}

/// The operating system's authorities.
pub(super) fn system_certificates() -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(refused(
            format!("sslrootcert is system, which has no certificates {}", why.join("; ")),
            "Install the package ca-certificates, or name a file with sslrootcert.",
        ));
    }
    Ok(found.certs)
}

/// The key of a file that only its owner can read, or root's group, as libpq demands.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let failed = |e: &dyn std::fmt::Display| {
        refused(
            format!("sslkey {} cannot be used: {e}", path.display()),
            "It must be an unencrypted PEM key; `openssl pkey` decrypts one.",
        )
    };
    let seen = fs::metadata(path).map_err(|e| failed(&e))?;
    let mode = seen.mode() & 0o777;
    let forbidden = if seen.uid() == 0 { 0o037 } else { 0o077 };
    if mode & forbidden != 0 {
        return Err(refused(
            format!("sslkey {} has mode {mode:o}, others can read it", path.display()),
            "Set it to 0600 with chmod.",
        ));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|e| failed(&e))
}
