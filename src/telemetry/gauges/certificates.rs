//! When certificates end: read from the certificates themselves, for the metrics. Verifies
//! nothing.

use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Most bytes of a file of certificates: the authorities of a system have a tenth of that.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Tags of DER (X.690) as certificates have them.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When each certificate of a file in PEM form ends, in microseconds of UTC.
///
/// # Errors
/// Why the time cannot be read.
pub fn ends_in(file: &Path) -> Result<Vec<i64>, String> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let ends = ends_of(&chain.map_err(|error| error.to_string())?);
    if ends.is_empty() { Err("holds no certificate that can be read".into()) } else { Ok(ends) }
}

/// When each of these certificates ends; those that cannot be read are left out.
#[must_use]
pub fn ends_of(certificates: &[CertificateDer<'_>]) -> Vec<i64> {
    certificates.iter().filter_map(|certificate| end_of(certificate)).collect()
}

/// When a certificate ends (RFC 5280: `Certificate.tbsCertificate.validity.notAfter`).
fn end_of(certificate: &[u8]) -> Option<i64> {
    let (certificate, _) = of_tag(certificate, SEQUENCE)?;
    let (fields, _) = of_tag(certificate, SEQUENCE)?;
    // A version, where there is one; then serial number, signature, issuer.
    let mut rest = of_tag(fields, VERSION).map_or(fields, |(_, rest)| rest);
    for _ in 0..3 {
        (_, _, rest) = value(rest)?;
    }
    let (validity, _) = of_tag(rest, SEQUENCE)?;
    let (_, _, rest) = value(validity)?;
    let (tag, time, _) = value(rest)?;
    moment(tag, std::str::from_utf8(time).ok()?)
}

/// The first value of DER: its tag, what it holds, and what follows it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let fits = bytes.len() <= 4;
        let length = bytes.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
        (fits.then_some(length)?, rest)
    };
    let (held, rest) = rest.split_at_checked(length)?;
    Some((tag, held, rest))
}

/// The first value where it has a tag: what it holds, and what follows it.
fn of_tag(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, held, rest) = value(der)?;
    (tag == wanted).then_some((held, rest))
}

/// A time of a certificate, in microseconds of UTC.
fn moment(tag: u8, text: &str) -> Option<i64> {
    let text = match tag {
        // Two digits of the year: 1950 to 2049.
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds since 1970 of a day's beginning.
    fn day(text: &str) -> i64 {
        format!("{text}T00:00:00Z").parse::<jiff::Timestamp>().expect("a time").as_microsecond()
    }

    #[test]
    fn a_certificate_says_when_it_ends_in_either_form_of_a_time() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("chain.pem");
        let mut text = String::new();
        // Before 2050 one form, from then on the other.
        for year in [2027, 2049, 2050, 2120] {
            let name = vec!["localhost".to_owned()];
            let mut wanted = rcgen::CertificateParams::new(name).expect("a certificate");
            wanted.not_after = rcgen::date_time_ymd(year, 3, 1);
            let key = rcgen::KeyPair::generate().expect("a key");
            text += &wanted.self_signed(&key).expect("signed").pem();
        }
        std::fs::write(&file, &text).expect("written");
        let wanted = ["2027-03-01", "2049-03-01", "2050-03-01", "2120-03-01"].map(day);
        assert_eq!(ends_in(&file), Ok(wanted.to_vec()));
        std::fs::write(&file, "nothing").expect("written");
        assert_eq!(ends_in(&file), Err("holds no certificate that can be read".into()));
        assert!(ends_in(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_no_certificate_has_no_end_and_harms_nobody() {
        let own = rcgen::generate_simple_self_signed(["x".to_owned()]).expect("a certificate");
        let der = own.cert.der();
        assert!(end_of(der).is_some());
        for length in 0..der.len() {
            assert_eq!(end_of(&der[..length]), None, "{length} bytes");
        }
        for broken in [&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff][..], &[SEQUENCE, 0x80], &[0x30]] {
            assert_eq!(end_of(broken), None);
        }
    }
}
