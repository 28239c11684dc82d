//! Bytes that arrived, cut into messages: a type byte, an `i32` length that counts itself, a body.
//! The buffer grows to the largest batch of answers and is reused.

use std::{
    future::poll_fn,
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::error::Error;

/// Answers to most exchanges arrive whole in one read.
const START_BYTES: usize = 16 * 1024;
const HEADER_BYTES: usize = 5;
/// Of a message of a session: longer rows, which PostgreSQL has up to 1 GiB, are no load's.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Of a message before the server has let us in.
const GREETING_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Inbox {
    /// Always initialised to its end, so that reading needs no clearing.
    bytes: Vec<u8>,
    filled: Range<usize>,
    /// The longest body that is taken.
    body_bytes_max: usize,
}

/// A message, its body still in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let bytes = vec![0; START_BYTES];
        Self { bytes, filled: 0..0, body_bytes_max: GREETING_BYTES_MAX }
    }

    /// The server has let us in: longer messages are taken from now on.
    pub(crate) fn let_in(&mut self) {
        self.body_bytes_max = MESSAGE_BYTES_MAX;
    }

    /// The next message if it is here whole.
    pub(crate) fn next(&mut self) -> Result<Option<Message<'_>>, Error> {
        let here = &self.bytes[self.filled.clone()];
        let Some((header, rest)) = here.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [tag, l0, l1, l2, l3] = *header;
        let length = i32::from_be_bytes([l0, l1, l2, l3]);
        let most = self.body_bytes_max;
        let body = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_sub(4))
            .filter(|&body| body <= most)
            .ok_or_else(|| {
                let name = char::from(tag);
                Error::protocol(format!(
                    "message {name:?} has length {length}, taken are 4 to {}",
                    most + 4
                ))
            })?;
        if rest.len() < body {
            return Ok(None);
        }
        let at = self.filled.start + HEADER_BYTES;
        self.filled.start = at + body;
        Ok(Some(Message { tag, body: &self.bytes[at..at + body] }))
    }

    /// Reads once; the stream's end is an error.
    pub(crate) async fn fill<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<(), Error> {
        poll_fn(|cx| self.poll_fill(stream, cx)).await
    }

    /// As [`Inbox::fill`].
    pub(crate) fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        self.make_room();
        let mut space = ReadBuf::new(&mut self.bytes[self.filled.end..]);
        let result = ready!(Pin::new(stream).poll_read(cx, &mut space));
        let read = space.filled().len();
        self.filled.end += read;
        Poll::Ready(match result {
            Err(source) => Err(Error::io("read from the server", source)),
            Ok(()) if read == 0 => Err(Error::io(
                "read from the server",
                io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"),
            )),
            Ok(()) => Ok(()),
        })
    }

    /// Moves what is left to the front; doubles a buffer that is more than half full then. It grows
    /// with what arrives, not with what a header announces.
    fn make_room(&mut self) {
        if self.filled.is_empty() {
            self.filled = 0..0;
            return;
        }
        if self.filled.start > 0 {
            self.bytes.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.filled.end > self.bytes.len() / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}

/// Reads the fields of an `ErrorResponse`.
pub(crate) fn server_error(body: &[u8]) -> Error {
    let mut severity = String::new();
    let mut sqlstate = String::new();
    let mut message = String::new();
    let (mut detail, mut hint) = (None, None);
    for field in body.split(|&byte| byte == 0) {
        let Some((&code, text)) = field.split_first() else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        match code {
            b'S' if severity.is_empty() => severity = text,
            b'V' => severity = text, // never translated
            b'C' => sqlstate = text,
            b'M' => message = text,
            b'D' => detail = Some(text),
            b'H' => hint = Some(text),
            _ => {}
        }
    }
    Error::server(severity, sqlstate, message, detail, hint)
}

/// A message that has no place where it arrived.
pub(crate) fn unexpected(message: Message<'_>, place: &str) -> Error {
    Error::protocol(format!("message {:?} came during {place}", char::from(message.tag)))
}
