//! A lean HTTP/1.1 client: one connection, one request in flight, bytes that the caller has built.
//!
//! It shares the machine with what it measures, so it costs as little as possible: no allocation
//! per request, no header map, no pool. It reads what our servers write: answers with a
//! `content-length`; anything else is an error, never a guess.

mod answer;

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) use answer::Answer;
use answer::Head;

/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// Largest answer that is kept.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection that is kept alive, and remade when the server has closed it.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    input: Vec<u8>,
}

impl Connection {
    /// A connection to be made with the first request.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Connection { address, stream: None, input: Vec::with_capacity(READ_BYTES) }
    }

    /// Sends a whole request and waits for its whole answer.
    ///
    /// # Errors
    /// When the connection breaks or the answer cannot be read; the next call connects anew. The
    /// server may have carried the request out.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        match self.converse(request).await {
            Ok(head) => Ok(head.answer(&self.input)),
            Err(error) => {
                self.stream = None;
                Err(error)
            }
        }
    }

    async fn converse(&mut self, request: &[u8]) -> io::Result<Head> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().expect("connected above");
        self.input.clear();
        stream.write_all(request).await?;
        let head = loop {
            receive(stream, &mut self.input).await?;
            if let Some(head) = Head::read(&self.input)? {
                break head;
            }
        };
        if head.end() > ANSWER_BYTES_MAX {
            return Err(io::Error::other(format!("an answer of {} bytes", head.end())));
        }
        while self.input.len() < head.end() {
            receive(stream, &mut self.input).await?;
        }
        if self.input.len() > head.end() {
            return Err(io::Error::other("more bytes than the answer said"));
        }
        if head.closes {
            self.stream = None;
        }
        Ok(head)
    }
}

async fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<()> {
    input.reserve(READ_BYTES);
    match stream.read_buf(input).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
