//! A child process that does not outlive the test, even one that aborts.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Keeps a process, all its threads and its children to some cores, such as `0` or `1-3`.
pub fn keep_to(id: u32, cores: &str) {
    let id = id.to_string();
    let kept = Command::new("taskset").args(["-a", "-c", "-p", cores, &id]).output();
    let kept = kept.expect("taskset runs");
    assert!(kept.status.success(), "process {id} is not kept to {cores}: {kept:?}");
}

/// A running server; killed when dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `program`; the kernel kills it when this process dies. Output goes to `log`.
    pub fn start(program: &Path, args: &[String], log: &Path) -> Self {
        let out = std::fs::File::create(log).expect("log file");
        let err = out.try_clone().expect("log file");
        let child = Command::new("setpriv")
            .arg("--pdeathsig=KILL")
            .arg(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        Process { child }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill runs").success(), "{name} does not reach process {id}");
    }

    /// Ends it immediately, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it still exists, stopped by a signal or not.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it has ended; `None` when it has not in time.
    pub fn wait(&mut self, limit: std::time::Duration) -> Option<std::process::ExitStatus> {
        let deadline = std::time::Instant::now() + limit;
        while std::time::Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first port that is given to a server.
const PORTS_FROM: u16 = 10_000;

/// Ports that a process of tests has before it comes to those of another one.
const PORTS_PER_PROCESS: u32 = 32;

/// A port that is free right now, and that no outgoing connection of this machine gets.
///
/// A server that is down for a while must find its port free when it comes back. The system's own
/// choice, port 0, is from the range of outgoing connections: a client's may take it meanwhile, or
/// a client that reconnects to the server again and again is connected to itself.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let ports = u32::from(first_outgoing_port() - PORTS_FROM);
    let place = std::process::id().wrapping_mul(PORTS_PER_PROCESS) % ports;
    for _ in 0..ports {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed) % ports;
        let port = PORTS_FROM + u16::try_from((place + given) % ports).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("somebody listens on each of {ports} ports from {PORTS_FROM} on");
}

/// The first port of the range of outgoing connections: read from Linux, on other systems higher.
fn first_outgoing_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|range| range.split_whitespace().next()?.parse().ok());
    first.filter(|first| *first > 2 * PORTS_FROM).unwrap_or(32_768)
}

/// libfaketime, which moves one process's clock: Debian has it in a folder of the machine's
/// architecture, where it is installed.
pub fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let library = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    library.into_iter().find(|library| library.exists())
}

/// Finds a program on the PATH or in `folders`, newest folder name first.
pub fn find_program(name: &str, folders: &[PathBuf]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(folders.iter().cloned())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("{name} not found; scripts/test installs it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_outgoing_connection_gets_the_port_of_a_server_that_is_down() {
        let ports: Vec<u16> = (0..100).map(|_| free_port()).collect();
        let different: std::collections::HashSet<&u16> = ports.iter().collect();
        assert_eq!(different.len(), ports.len(), "{ports:?}");
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let outgoing = client.local_addr().unwrap().port();
        assert!(ports.iter().all(|port| *port < outgoing), "{outgoing} {ports:?}");
    }
}
