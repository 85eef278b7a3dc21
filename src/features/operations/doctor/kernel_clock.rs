//! Whether the kernel reports that its clock is kept by NTP (`adjtimex(2)`, in its form that
//! changes nothing).

use std::io;

/// The kernel's answer.
///
/// # Errors
/// The kernel does not answer: a sandbox may forbid the call.
pub(super) fn is_synchronised() -> io::Result<bool> {
    // All zero is a question; nothing is changed.
    #[expect(unsafe_code, reason = "no crate of the tree has a safe way to ask")]
    let (state, answer) = unsafe {
        let mut question: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut question), question)
    };
    if state == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(state != libc::TIME_ERROR && answer.status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_answers_the_same_twice() {
        let asked = || super::is_synchronised().map_err(|error| error.kind());
        assert_eq!(asked(), asked());
    }
}
