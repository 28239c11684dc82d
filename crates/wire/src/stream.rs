//! The transport of a session: a Unix socket, TCP, or TLS over TCP.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::{socket::UnixSocket, target::Keepalive};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// A Unix socket.
    Unix(UnixSocket),
    /// TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// TLS over TCP; boxed, so that the others stay small.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connects to an address, without Nagle's delay.
pub(crate) async fn tcp(address: SocketAddr, keepalive: &Keepalive) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
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
        let socket = SockRef::from(&stream);
        socket.set_keepalive(true)?;
        socket.set_tcp_keepalive(&probes)?;
    }
    if keepalive.user_timeout.is_some() {
        SockRef::from(&stream).set_tcp_user_timeout(keepalive.user_timeout)?;
    }
    Ok(stream)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
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
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
