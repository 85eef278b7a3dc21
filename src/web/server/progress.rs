//! A stream whose writes must make progress: a client that asks and never reads holds a connection,
//! and what is to be sent, for as long as it likes.
//!
//! Costs a comparison while the client reads; a timer is set only where the socket is full.
//!
//! The socket is registered with the runtime that polls it: the other runtime of its connection is
//! not woken for what arrives.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::lanes::{Lane, Lanes};

/// A connection that is ended if a write makes no progress for too long.
pub(super) struct Progress {
    /// Absent once the socket could not be registered anew: the connection is broken off.
    stream: Option<TcpStream>,
    lanes: Arc<Lanes>,
    /// The lane with whose runtime the socket is registered.
    registered: Lane,
    /// Longest time in which nothing more can be sent.
    limit: Duration,
    /// Made when the socket is full for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    is_stuck: bool,
}

impl Progress {
    /// A stream whose writes may stall for so long.
    pub(super) fn new(stream: TcpStream, lanes: Arc<Lanes>, limit: Duration) -> Self {
        let registered = lanes.now();
        Progress { stream: Some(stream), lanes, registered, limit, timer: None, is_stuck: false }
    }

    /// The stream, registered with the runtime of this poll.
    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let lane = self.lanes.now();
        if lane != self.registered {
            self.registered = lane;
            // A timer belongs to the runtime that made it. The wait for the client begins anew.
            (self.timer, self.is_stuck) = (None, false);
            let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
            self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
        }
        Ok(Pin::new(self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?))
    }

    /// The result of a write; one that has stalled for too long is an error.
    fn watch(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_stuck = false;
            return written;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.is_stuck {
            self.is_stuck = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(context).map(|()| {
            // The bytes in the socket are of no use, and the kernel would keep them.
            let _ = self.stream.as_ref().map(TcpStream::set_zero_linger);
            Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer"))
        })
    }
}

impl AsyncRead for Progress {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Progress {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(TcpStream::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}
