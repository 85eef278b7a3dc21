//! A TCP proxy before a server: forwards, delays, loses bytes, refuses, or cuts.
//!
//! A connection whose bytes were lost is cut before anything is forwarded on it again, as a network
//! would: neither side ever sees a stream with a hole.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The treatment of bytes and new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    Forward,
    LoseAnswers,
    LoseAll,
    Refuse,
}

/// A running proxy. Its threads end with it.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    mode: AtomicU8,
    delay_ms: AtomicU64,
    is_closed: AtomicBool,
    /// Connections so far.
    count: AtomicU64,
    /// Connections with a smaller number lose everything.
    forgotten: AtomicU64,
    /// Both ends of each connection, by a running number.
    connections: Mutex<BTreeMap<u64, [TcpStream; 2]>>,
}

impl Proxy {
    /// Starts a proxy before a server on this machine.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            target: target.into(),
            mode: (Mode::Forward as u8).into(),
            delay_ms: 0.into(),
            is_closed: false.into(),
            count: 0.into(),
            forgotten: 0.into(),
            connections: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for (id, client) in listener.incoming().map_while(Result::ok).enumerate() {
                if shared.is_closed.load(Ordering::SeqCst) {
                    return;
                }
                shared.accept(id as u64, client);
            }
        });
        Proxy { port, state }
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL for clients of a Redis behind it.
    pub fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on new connections go to another server; earlier ones stay.
    pub fn retarget_new(&self, target: u16) {
        self.state.target.store(target, Ordering::SeqCst);
    }

    /// From now on new connections go to another server; earlier ones are cut.
    pub fn retarget(&self, target: u16) {
        self.retarget_new(target);
        self.cut();
    }

    /// From now on answers get lost on their way; requests still arrive.
    pub fn swallow_answers(&self) {
        self.state.set(Mode::LoseAnswers);
    }

    /// From now on nothing arrives in either direction, without an error.
    pub fn swallow_all(&self) {
        self.state.set(Mode::LoseAll);
    }

    /// The peers of all present connections vanish without a word; new connections work.
    pub fn forget_present(&self) {
        self.state.forgotten.store(self.state.count.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Cuts all connections, and closes each new one immediately.
    pub fn refuse(&self) {
        self.state.set(Mode::Refuse);
        self.cut();
    }

    /// From now on all bytes arrive so much later.
    pub fn delay(&self, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).expect("a delay of this age of the world");
        self.state.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// Forwards again, without delay. Connections whose bytes may be lost are cut.
    pub fn forward(&self) {
        self.state.delay_ms.store(0, Ordering::SeqCst);
        if self.state.mode() != Mode::Forward {
            self.cut();
            self.state.set(Mode::Forward);
        }
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.state.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_closed.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the listener, which then sees that it is closed.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl State {
    fn cut(&self) {
        let connections = std::mem::take(&mut *self.connections.lock().unwrap());
        for end in connections.into_values().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    fn mode(&self) -> Mode {
        let modes = [Mode::Forward, Mode::LoseAnswers, Mode::LoseAll, Mode::Refuse];
        modes[usize::from(self.mode.load(Ordering::SeqCst))]
    }

    fn accept(self: &Arc<Self>, id: u64, client: TcpStream) {
        self.count.store(id + 1, Ordering::SeqCst);
        if self.mode() == Mode::Refuse {
            return;
        }
        let target = self.target.load(Ordering::SeqCst);
        // No server listens behind the proxy: the client sees a closed connection.
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { return };
        let ends = [client, server];
        for end in &ends {
            let _ = end.set_nodelay(true);
        }
        let directions = [false, true].map(|answers| {
            let [client, server] = [0, 1].map(|end: usize| ends[end].try_clone().unwrap());
            if answers { (server, client, true) } else { (client, server, false) }
        });
        self.connections.lock().unwrap().insert(id, ends);
        for (from, to, answers) in directions {
            let state = Arc::clone(self);
            thread::spawn(move || state.copy(id, from, to, answers));
        }
        // The target changed in between: `cut` may have missed this connection.
        if self.target.load(Ordering::SeqCst) != target {
            self.cut();
        }
    }

    fn copy(&self, id: u64, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut buffer = [0; 16 * 1024];
        let mut has_hole = false;
        while let Ok(read) = from.read(&mut buffer) {
            let delay_ms = self.delay_ms.load(Ordering::SeqCst);
            if delay_ms > 0 {
                thread::park_timeout(Duration::from_millis(delay_ms));
            }
            let mode = self.mode();
            let is_lost = mode == Mode::LoseAll
                || (mode == Mode::LoseAnswers && answers)
                || id < self.forgotten.load(Ordering::SeqCst);
            // A connection that slipped past the cut of a change of mode ends here.
            let is_over = mode == Mode::Refuse || (has_hole && !is_lost);
            has_hole |= is_lost;
            if read == 0 || is_over || (!is_lost && to.write_all(&buffer[..read]).is_err()) {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
        self.connections.lock().unwrap().remove(&id);
    }
}
