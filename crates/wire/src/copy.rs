//! COPY FROM STDIN: large writes, and an ear for the server's error while they go on.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::{
    error::Error,
    inbox::{server_error, unexpected},
    session::{Session, affected, finish},
    stream::Stream,
};

const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];

/// A COPY under way. Dropped without [`CopyIn::finish`], it leaves the session unusable and the
/// server rolls back when the session is dropped.
#[derive(Debug)]
pub struct CopyIn<'a, S = Stream> {
    session: &'a mut Session<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Begins `COPY … FROM STDIN`.
    ///
    /// # Errors
    ///
    /// The server's, a broken connection, or SQL that is not such a COPY.
    pub async fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_, S>, Error> {
        self.query(sql)?;
        self.send().await?;
        loop {
            while let Some(message) = self.inbox.next()? {
                match message.tag {
                    b'G' => return Ok(CopyIn { session: self }),
                    b'N' | b'A' | b'S' => {}
                    b'E' => {
                        let said = server_error(message.body);
                        let read = self.receive(|_| Ok(())).await;
                        return Err(finish(read, Some(said)).err().unwrap_or_else(nothing_said));
                    }
                    _ => return Err(unexpected(message, "the start of COPY")),
                }
            }
            self.inbox.fill(&mut self.stream).await?;
        }
    }
}

fn nothing_said() -> Error {
    Error::protocol("COPY ended without a reason")
}

impl<S: AsyncRead + AsyncWrite + Unpin> CopyIn<'_, S> {
    /// Sends a piece of the data, without copying it; pieces of 64 KiB and more are efficient.
    /// Rows may be cut anywhere.
    ///
    /// # Errors
    ///
    /// The server's error as soon as it is seen, which may be some pieces late; the COPY is over
    /// then and the session usable. Or a broken connection.
    pub async fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        let length = u32::try_from(data.len() + 4)
            .ok()
            .filter(|length| i32::try_from(*length).is_ok())
            .ok_or_else(|| Error::protocol(format!("COPY piece has {} bytes", data.len())))?;
        let [l0, l1, l2, l3] = length.to_be_bytes();
        self.write(&[b'd', l0, l1, l2, l3], data).await?;
        self.listen().await
    }

    /// Ends the data; returns the number of rows that the server counted.
    ///
    /// # Errors
    ///
    /// The server's, or a broken connection.
    pub async fn finish(self) -> Result<u64, Error> {
        let mut this = self;
        this.write(&COPY_DONE, &[]).await?;
        // Only TLS has something to flush; when that fails, so does reading.
        let _read_next = this.session.stream.flush().await;
        let mut rows = 0;
        let mut failed = None;
        let read = this
            .session
            .receive(|message| {
                match message.tag {
                    b'C' => rows = affected(message.body),
                    b'E' if failed.is_none() => failed = Some(server_error(message.body)),
                    b'E' => {}
                    _ => return Err(unexpected(message, "the end of COPY")),
                }
                Ok(())
            })
            .await;
        finish(read, failed)?;
        Ok(rows)
    }

    /// Writes a message and receives what the server says meanwhile. A message once begun is
    /// written to its end, so that the session stays in step.
    async fn write(&mut self, header: &[u8], data: &[u8]) -> Result<(), Error> {
        let mut written = 0;
        let mut heard = false;
        let result =
            poll_fn(|cx| self.poll_write(cx, header, data, &mut written, &mut heard)).await;
        match result {
            Ok(()) => Ok(()),
            // When the server is gone, its last words are the better error.
            Err(broken) => Err(self.session.last_words().await.unwrap_or(broken)),
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        header: &[u8],
        data: &[u8],
        written: &mut usize,
        heard: &mut bool,
    ) -> Poll<Result<(), Error>> {
        let session = &mut *self.session;
        while *written < header.len() + data.len() {
            // An error of the server's must not wait behind a full socket buffer.
            if !*heard {
                match session.inbox.poll_fill(&mut session.stream, cx) {
                    Poll::Ready(result) => {
                        result?;
                        *heard = true;
                    }
                    Poll::Pending => {}
                }
            }
            let slices = [
                IoSlice::new(header.get(*written..).unwrap_or_default()),
                IoSlice::new(&data[written.saturating_sub(header.len())..]),
            ];
            match Pin::new(&mut session.stream).poll_write_vectored(cx, &slices) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => {
                    let source = io::Error::from(io::ErrorKind::WriteZero);
                    return Poll::Ready(Err(Error::io("write to the server", source)));
                }
                Poll::Ready(Ok(count)) => *written += count,
                Poll::Ready(Err(source)) => {
                    return Poll::Ready(Err(Error::io("write to the server", source)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what has arrived: notices are nothing, an error ends the COPY.
    async fn listen(&mut self) -> Result<(), Error> {
        while let Some(message) = self.session.inbox.next()? {
            match message.tag {
                b'N' | b'A' | b'S' => {}
                b'E' => {
                    let said = server_error(message.body);
                    let read = self.session.receive(|_| Ok(())).await;
                    return Err(finish(read, Some(said)).err().unwrap_or_else(nothing_said));
                }
                _ => return Err(unexpected(message, "COPY")),
            }
        }
        Ok(())
    }
}
