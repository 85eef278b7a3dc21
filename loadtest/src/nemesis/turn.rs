//! The day on which one series takes over from another in the middle of a drill, so that requests
//! without a date are repeated on its other side (F40).
//!
//! A midnight of some zone is never farther away than half an hour; the remainder is a shift of the
//! clocks of all processes of the drill, the same for all.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Unit};
use numerator::clock::{Clock as _, SystemClock};
use testkit::process::faketime;
use testkit::service::Program;

use super::orders::{LINE_DIGITS, SUCCESSOR, TURNING};
use super::world::SETTINGS;
use crate::program;

/// Its time.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// A zone in which the clocks then show midnight.
    zone: String,
    /// The day that begins.
    pub(super) day: String,
    /// How far all clocks are shifted.
    shift: SignedDuration,
}

impl Turn {
    /// After this time from now.
    pub(super) fn after(period: Duration) -> Self {
        let period = SignedDuration::try_from(period).expect("a drill ends");
        let at = SystemClock.now() + period;
        let shown = at.round(Unit::Hour).expect("there is a next hour");
        let hour = i64::from(shown.to_zoned(TimeZone::UTC).hour());
        // `Etc/GMT-3` is three hours ahead of UTC.
        let zone =
            if hour <= 12 { format!("Etc/GMT+{hour}") } else { format!("Etc/GMT-{}", 24 - hour) };
        let local = shown.to_zoned(TimeZone::get(&zone).expect("a zone of whole hours"));
        let shift = SignedDuration::from_secs(shown.duration_since(at).as_secs());
        Turn { zone, day: local.date().to_string(), shift }
    }

    /// In a drill that has none, and with correct clocks.
    pub(super) fn of_another_day() -> Self {
        let day = SystemClock.now() + SignedDuration::from_hours(2 * 24);
        let day = day.to_zoned(TimeZone::UTC).date().to_string();
        Turn { zone: "UTC".into(), day, shift: SignedDuration::ZERO }
    }

    /// The shift in microseconds.
    pub(super) fn shift_us(&self) -> i64 {
        i64::try_from(self.shift.as_micros()).expect("half an hour at most")
    }

    /// The program of every process, its clock shifted.
    pub(super) fn program(&self) -> Program {
        match self.shift.as_secs() {
            0 => program(&SETTINGS),
            seconds => faked(&format!("{seconds:+}")),
        }
    }

    /// The two series, with the counters of the others.
    pub(super) fn series(&self) -> String {
        let Turn { zone, day, .. } = self;
        let one = |code: &str, days: &str| {
            format!(
                "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntimezone = \"{zone}\"\n\
                 template = \"{}{{LINE}}-{{SEQ:9}}\"\n\
                 serves = {{ types = [\"{TURNING}\"], {days} = \"{day}\" }}\n[series.variables]\n\
                 LINE = {{ required = true, alphabet = \"0-9\", width = {LINE_DIGITS} }}\n\
                 [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n",
                &code[..1]
            )
        };
        one(TURNING, "dated_before") + &one(SUCCESSOR, "dated_from")
    }
}

/// The program with a clock that is off by this much, in the form that libfaketime reads.
pub(super) fn faked(offset: &str) -> Program {
    let library = faketime().expect("install the Debian package faketime");
    let Program { path, arguments } = program(&SETTINGS);
    let mut all = vec![
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME={offset}"),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        path.display().to_string(),
    ];
    all.extend(arguments);
    Program { path: "/usr/bin/env".into(), arguments: all }
}
