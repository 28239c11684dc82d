//! The transport of a session: a Unix socket, TCP, or TLS over TCP.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::{socket::Socket, target::Keepalive};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// A Unix or TCP socket.
    Plain(Socket),
    /// TLS over TCP; boxed, so that the other stays small.
    Tls(Box<TlsStream<Socket>>),
}

/// Connects to an address, without Nagle's delay.
pub(crate) async fn tcp(address: SocketAddr, keepalive: &Keepalive) -> io::Result<Socket> {
    let prepare = |stream: &tokio::net::TcpStream| {
        let socket = SockRef::from(stream);
        if keepalive.on {
            let mut probes = TcpKeepalive::new();
            if let Some(idle) = keepalive.idle {
                probes = probes.with_time(idle);
            }
            if let Some(interval) = keepalive.interval {
                probes = probes.with_interval(interval);
            }
            if let Some(count) = keepalive.count {
                probes = probes.with_retries(count);
            }
            socket.set_keepalive(true)?;
            socket.set_tcp_keepalive(&probes)?;
        }
        match keepalive.user_timeout {
            None => Ok(()),
            timeout => socket.set_tcp_user_timeout(timeout),
        }
    };
    Socket::tcp(address, prepare).await
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
