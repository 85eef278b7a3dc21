//! Lines of the log on their way to stderr: gathered for a moment, so that a busy service pays for
//! one write and not for one per request.
//!
//! Loses no line and keeps their order. A line of level `warn` or above is written immediately,
//! with all lines before it: what led to a crash is in the log. Only a process that ends abruptly
//! (killed, out of memory, out of stack) loses the last [`GATHER_PERIOD`] of its other lines.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How long a line waits for others at most.
const GATHER_PERIOD: Duration = Duration::from_millis(20);

/// Bytes that may wait; a thread that logs past that writes them itself.
const GATHERED_BYTES_MAX: usize = 256 * 1_024;

/// Gathers lines for one sink.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

/// Sees to it that what is gathered at the end is written; later lines go out one by one.
pub(crate) struct Gathering(LogWriter);

struct Shared {
    gathered: Mutex<Gathered>,
    arrived: Condvar,
    /// Locked before `gathered` is emptied, so that lines leave in the order in which they came.
    sink: Mutex<Box<dyn Write + Send>>,
}

#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    has_ended: bool,
}

impl LogWriter {
    /// Lines for `sink`, gathered by a dedicated thread until the second value is dropped.
    pub(crate) fn gathering(sink: impl Write + Send + 'static) -> (Self, Gathering) {
        let shared = Shared {
            gathered: Mutex::default(),
            arrived: Condvar::new(),
            sink: Mutex::new(Box::new(sink)),
        };
        let writer = LogWriter(Arc::new(shared));
        let gathering = writer.clone();
        // Without a thread the lines go out once they are many, and at the end.
        let _ = thread::Builder::new().name("log".into()).spawn(move || gathering.run());
        (writer.clone(), Gathering(writer))
    }

    /// Writes what was gathered, again and again until the end.
    fn run(&self) {
        while self.wait() {
            self.flush();
        }
    }

    /// Waits for a line, and then for others; false at the end.
    fn wait(&self) -> bool {
        let Shared { gathered, arrived, .. } = &*self.0;
        let guard = gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |gathered: &mut Gathered| gathered.bytes.is_empty() && !gathered.has_ended;
        let guard = arrived.wait_while(guard, is_idle).unwrap_or_else(PoisonError::into_inner);
        let goes_on = |gathered: &mut Gathered| !gathered.has_ended;
        let waited = arrived.wait_timeout_while(guard, GATHER_PERIOD, goes_on);
        !waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// Writes what was gathered.
    fn flush(&self) {
        let mut sink = self.0.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = {
            let mut gathered = self.0.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            let room = Vec::with_capacity(gathered.bytes.len());
            std::mem::replace(&mut gathered.bytes, room)
        };
        // An error of the log cannot be reported anywhere.
        let _ = sink.write_all(&bytes);
    }

    fn add(&self, line: &[u8], is_urgent: bool) {
        let must_flush = {
            let mut gathered = self.0.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            if gathered.bytes.is_empty() {
                self.0.arrived.notify_one();
            }
            gathered.bytes.extend_from_slice(line);
            is_urgent || gathered.has_ended || gathered.bytes.len() > GATHERED_BYTES_MAX
        };
        if must_flush {
            self.flush();
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        let shared = &self.0.0;
        shared.gathered.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
        shared.arrived.notify_one();
        self.0.flush();
    }
}

/// One line on its way; the log hands it over whole.
pub(crate) struct Line<'a> {
    writer: &'a LogWriter,
    is_urgent: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.writer.add(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { writer: self, is_urgent: true }
    }

    fn make_writer_for(&'a self, about: &tracing::Metadata<'_>) -> Line<'a> {
        Line { writer: self, is_urgent: *about.level() <= tracing::Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// What was written, and in how many writes.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<(String, usize)>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !bytes.is_empty() {
                let mut written = self.0.lock().unwrap();
                written.0.push_str(std::str::from_utf8(bytes).unwrap());
                written.1 += 1;
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn shows(&self, text: &str) {
            let deadline = Instant::now() + Duration::from_secs(30);
            while self.0.lock().unwrap().0 != text {
                assert!(Instant::now() < deadline, "{:?}", self.0.lock().unwrap());
                thread::yield_now();
            }
        }
    }

    #[test]
    fn lines_leave_in_their_order_by_themselves() {
        let sink = Sink::default();
        let (writer, _gathering) = LogWriter::gathering(sink.clone());
        writer.add(b"one\n", false);
        writer.add(b"two\n", false);
        sink.shows("one\ntwo\n");
        writer.add(b"three\n", false);
        sink.shows("one\ntwo\nthree\n");
    }

    #[test]
    fn an_urgent_line_takes_those_before_it_along_at_once() {
        let sink = Sink::default();
        let (writer, _gathering) = LogWriter::gathering(sink.clone());
        for _ in 0..3 {
            writer.add(b"request\n", false);
        }
        writer.add(b"warning\n", true);
        assert_eq!(sink.0.lock().unwrap().0, "request\nrequest\nrequest\nwarning\n");
    }

    #[test]
    fn nothing_is_left_at_the_end_and_later_lines_still_go_out() {
        let sink = Sink::default();
        let (writer, gathering) = LogWriter::gathering(sink.clone());
        writer.add(b"last\n", false);
        drop(gathering);
        assert_eq!(sink.0.lock().unwrap().0, "last\n");
        writer.add(b"later\n", false);
        assert_eq!(sink.0.lock().unwrap().0, "last\nlater\n");
    }

    #[test]
    fn more_lines_than_may_wait_are_written_by_whoever_logs() {
        let sink = Sink::default();
        let (writer, _gathering) = LogWriter::gathering(sink.clone());
        let line = vec![b'x'; GATHERED_BYTES_MAX + 1];
        writer.add(&line, false);
        assert_eq!(sink.0.lock().unwrap().0.len(), line.len());
    }
}
