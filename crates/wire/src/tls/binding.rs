//! `tls-server-end-point` of RFC 5929: the hash of the server's certificate by the hash of its own
//! signature, SHA-256 in place of MD5 and SHA-1.

use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::{
    Certificate,
    der::{Decode, oid::ObjectIdentifier},
};

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

const BY_SHA256: [ObjectIdentifier; 5] = [
    oid("1.2.840.113549.1.1.11"), // RSA
    oid("1.2.840.10045.4.3.2"),   // ECDSA
    oid("1.2.840.113549.1.1.4"),  // RSA by MD5
    oid("1.2.840.113549.1.1.5"),  // RSA by SHA-1
    oid("1.2.840.10045.4.1"),     // ECDSA by SHA-1
];
const BY_SHA384: [ObjectIdentifier; 2] = [oid("1.2.840.113549.1.1.12"), oid("1.2.840.10045.4.3.3")];
const BY_SHA512: [ObjectIdentifier; 2] = [oid("1.2.840.113549.1.1.13"), oid("1.2.840.10045.4.3.4")];

/// The hash of a certificate in DER; `None` where its signature names no hash that we know
/// (RSASSA-PSS, Ed25519: RFC 5929 leaves them open).
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let algorithm = parsed.signature_algorithm().oid;
    if BY_SHA256.contains(&algorithm) {
        Some(Sha256::digest(certificate).to_vec())
    } else if BY_SHA384.contains(&algorithm) {
        Some(Sha384::digest(certificate).to_vec())
    } else if BY_SHA512.contains(&algorithm) {
        Some(Sha512::digest(certificate).to_vec())
    } else {
        None
    }
}
