//! A TCP proxy before a server: forwards, swallows what the server answers, or cuts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A running proxy. Its threads end with its connections.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    swallowing: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts a proxy before a server on this machine.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Mutex::new(Vec::new());
        let state = Arc::new(State {
            target: AtomicU16::new(target),
            swallowing: AtomicBool::new(false),
            connections,
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Nobody listens behind the proxy: the client sees a closed connection.
                let target = shared.target.load(Ordering::SeqCst);
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else {
                    continue;
                };
                shared.join(&client, &server);
                // The target changed in between: `cut` may have missed this connection.
                if shared.target.load(Ordering::SeqCst) != target {
                    shared.cut();
                }
            }
        });
        Proxy { port, state }
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients of a Redis behind it connect.
    pub fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on new connections go to another server; those of before stay where they are.
    pub fn retarget_new(&self, target: u16) {
        self.state.target.store(target, Ordering::SeqCst);
    }

    /// From now on new connections go to another server; those of before are cut.
    pub fn retarget(&self, target: u16) {
        self.retarget_new(target);
        self.cut();
    }

    /// From now on answers get lost on their way; requests still arrive.
    pub fn swallow_answers(&self) {
        self.state.swallowing.store(true, Ordering::SeqCst);
    }

    /// Forwards again. Connections whose answers got lost are cut, as a network would.
    pub fn forward(&self) {
        self.cut();
        self.state.swallowing.store(false, Ordering::SeqCst);
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.state.cut();
    }
}

impl State {
    fn cut(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        for stream in [client, server] {
            let _ = stream.set_nodelay(true);
            self.connections.lock().unwrap().push(stream.try_clone().unwrap());
        }
        for (from, to, answers) in [(client, server, false), (server, client, true)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = Arc::clone(self);
            thread::spawn(move || state.copy(from, to, answers));
        }
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read) = from.read(&mut buffer) {
            let lost = answers && self.swallowing.load(Ordering::SeqCst);
            if read == 0 || (!lost && to.write_all(&buffer[..read]).is_err()) {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
