//! What to do about an error of TLS.

use std::io;

use tokio_rustls::rustls::{self, CertificateError, Error as TlsError};

/// A sentence.
pub(crate) fn hint(error: &TlsError) -> &'static str {
    use CertificateError as Bad;
    match error {
        TlsError::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "Name the certificate of the authority that signed the server's with sslrootcert."
        }
        TlsError::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "Connect by a name that the certificate carries as a subjectAltName, or use \
             sslmode=verify-ca."
        }
        TlsError::InvalidCertificate(
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. },
        ) => "Renew the server's certificate, or set this machine's clock.",
        TlsError::InvalidCertificate(_) => {
            "The certificate must be of X.509 version 3, with a subjectAltName and a signature by \
             SHA-256 or better; one that signs itself must stand in sslrootcert."
        }
        TlsError::AlertReceived(_) => {
            "The server refused; its log says why. A certificate of the client is named with \
             sslcert and sslkey."
        }
        _ => "The server and we have no TLS version or cipher in common, or it is no PostgreSQL.",
    }
}

/// What rustls says of an error that came up while a session was running, if it was rustls.
pub(crate) fn hint_of(error: &io::Error) -> Option<&'static str> {
    error.get_ref()?.downcast_ref::<rustls::Error>().map(hint)
}
