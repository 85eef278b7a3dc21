//! A stream whose writes must make progress: a client that asks and never reads holds a connection,
//! and what is to be sent, for as long as it likes.
//!
//! Costs a comparison while the client reads; a timer is set only where the socket is full.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A connection that breaks off where a write makes no progress for too long.
pub(super) struct Progress {
    stream: TcpStream,
    /// Longest time in which nothing more can be sent.
    limit: Duration,
    /// Made when the socket is full for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    is_stuck: bool,
}

impl Progress {
    /// A stream whose writes may stand still for so long.
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        Progress { stream, limit, timer: None, is_stuck: false }
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
            // What lies in the socket is of no use to anybody, and the kernel would keep it.
            let _ = self.stream.set_zero_linger();
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Progress {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
