//! What is checked of a server's certificate: nothing, its authority, or also its name. That the
//! server has the key of its certificate is always checked.

use std::sync::Arc;

use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{
        WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key,
    },
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::ParsedCertificate,
};
use x509_cert::{
    Certificate,
    der::{Decode, Encode},
};

use super::refused;
use crate::error::Error;

/// Judges certificates for one configuration.
#[derive(Debug)]
pub(super) struct Verifier {
    authorities: Option<Authorities>,
    name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Authorities {
    store: Arc<RootCertStore>,
    /// As they stand in the file: a server's own self-signed certificate may be among them.
    listed: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) fn of_nothing(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { authorities: None, name: false, algorithms }
    }

    pub(super) fn new(
        listed: Vec<CertificateDer<'static>>,
        name: bool,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Self, Error> {
        let mut store = RootCertStore::empty();
        let (added, ignored) = store.add_parsable_certificates(listed.iter().cloned());
        if added == 0 {
            return Err(refused(
                format!("none of the {ignored} certificates of sslrootcert can be used"),
                "They must be those of authorities, in PEM.",
            ));
        }
        let authorities = Some(Authorities { store: Arc::new(store), listed });
        Ok(Self { authorities, name, algorithms })
    }

    fn chain(
        &self,
        authorities: &Authorities,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), TlsError> {
        // OpenSSL, and so libpq, trusts a certificate that stands in the list itself.
        if authorities.listed.iter().any(|listed| listed == leaf) {
            return in_time(leaf, now);
        }
        let parsed = ParsedCertificate::try_from(leaf)?;
        let (store, all) = (&authorities.store, self.algorithms.all);
        verify_server_cert_signed_by_trust_anchor(&parsed, store, intermediates, now, all)
    }
}

fn decode(leaf: &CertificateDer<'_>) -> Result<Certificate, TlsError> {
    Certificate::from_der(leaf).map_err(|_| CertificateError::BadEncoding.into())
}

fn in_time(leaf: &CertificateDer<'_>, now: UnixTime) -> Result<(), TlsError> {
    let certificate = decode(leaf)?;
    let validity = certificate.tbs_certificate().validity();
    let seconds = now.as_secs();
    if seconds < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if seconds > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if let Some(authorities) = &self.authorities {
            self.chain(authorities, leaf, intermediates, now)?;
        }
        if self.name {
            verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, leaf, signature, &self.algorithms)
    }

    /// By the bare key, which certificates of X.509 version 1 have as well: `openssl x509 -req`
    /// makes them.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let key = decode(leaf)?.tbs_certificate().subject_public_key_info().to_der();
        let key = key.map_err(|_| TlsError::from(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
