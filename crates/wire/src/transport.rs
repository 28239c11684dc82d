//! What the bytes of a session travel over.

/// With TLS or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Without.
    Plain,
    /// With what SCRAM can tie itself to, if there is such a thing.
    Tls {
        /// A hash of the server's certificate.
        end_point: Option<Vec<u8>>,
    },
}
