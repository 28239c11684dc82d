//! Messages of a server, as bytes.

/// A message with its length.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(body.len() + 5);
    out.push(tag);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// `DataRow`.
#[must_use]
pub fn data_row(fields: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut body = u16::try_from(fields.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
    for field in fields {
        let length = field.as_ref().map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(-1));
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(field.as_deref().unwrap_or_default());
    }
    message(b'D', &body)
}

/// `ErrorResponse`.
#[must_use]
pub fn error_message(severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (code, value) in [(b'S', severity), (b'V', severity), (b'C', sqlstate), (b'M', text)] {
        body.push(code);
        body.extend_from_slice(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    message(b'E', &body)
}

/// `CommandComplete`.
pub(crate) fn command_complete(tag: &str) -> Vec<u8> {
    let mut body = tag.as_bytes().to_vec();
    body.push(0);
    message(b'C', &body)
}

/// `ParameterStatus`.
pub(crate) fn parameter_status(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

/// An authentication request.
pub(crate) fn authentication(code: i32, rest: &[u8]) -> Vec<u8> {
    let mut body = code.to_be_bytes().to_vec();
    body.extend_from_slice(rest);
    message(b'R', &body)
}
