//! Whether the kernel says that its clock is kept by NTP (`adjtimex(2)`, which asks for nothing to
//! be changed).

use std::io;

/// What the kernel says.
///
/// # Errors
/// Where it does not: a sandbox may forbid the question.
pub(super) fn is_synchronised() -> io::Result<bool> {
    // All zero is a question; what is not asked about is left as it is.
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
