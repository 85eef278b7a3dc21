//! Counters written into both stores as if callers had touched them: a million in seconds.
//!
//! What is written is what seeding leaves behind: a row in the ledger that is seeded and not used
//! yet, and a counter in Redis of the epoch that is open. Lines are the last seven digits of a
//! counter's key.

use std::ops::Range;

use harness::postgres::Postgres;
use harness::redis::Redis;

/// Counters written to Redis in one call.
const FILL_MAX: u64 = 100_000;

/// Counters of one series that stand in the ledger; their ids follow one another.
pub(crate) struct Written {
    lines: Range<u64>,
    first_id: u64,
    /// The key of their series' line 0, which a caller has touched.
    key: String,
}

/// Writes counters like the one whose key in the ledger is `key`, which ends in line 0.
pub(crate) fn write(postgres: &Postgres, schema: &str, key: &str, lines: Range<u64>) -> Written {
    let first_id = postgres.sql(&format!("select max(counter_id) + 1 from {schema}.counter"));
    let Range { start, end } = lines;
    postgres.sql(&format!(
        "insert into {schema}.counter (series_id, serial, key, partition_id, epoch, origin, \
         start_value, taken, ceiling, step, seeded_by, seeded_at_us) \
         select series_id, serial, \
         replace(key, '0000000', lpad(line::text, 7, '0')), partition_id, epoch, origin, origin, \
         origin, origin + 10 * step, step, seeded_by, seeded_at_us \
         from {schema}.counter, generate_series({start}, {end} - 1) line \
         where key = '{key}' order by line"
    ));
    postgres.sql(&format!("analyze {schema}.counter"));
    Written { lines, first_id: first_id.parse().expect("an id"), key: key.to_owned() }
}

/// Writes them into Redis, under keys that begin with `prefix`.
pub(crate) fn fill(
    postgres: &Postgres,
    schema: &str,
    redis: &Redis,
    prefix: &str,
    written: &Written,
) {
    let Written { lines, first_id, key } = written;
    let epoch = postgres.sql(&format!(
        "select p.epoch from {schema}.partition p join {schema}.counter c using (partition_id) \
         where c.key = '{key}'"
    ));
    let keys = redis.cli(&["--scan", "--pattern", &format!("{prefix}:*:c:*{key}")]);
    let touched = keys.lines().next().expect("a counter that was taken from");
    let stem = &touched[..touched.len() - 7];
    let script = "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do redis.call('hset', \
                  KEYS[1] .. string.format('%07d', i), 'epoch', ARGV[3], 'value', '0', 'check', \
                  '0', 'ceiling', '10', 'id', string.format('%d', ARGV[4] + i)) end";
    // What a line's id is more than the line.
    let offset = i128::from(*first_id) - i128::from(lines.start);
    let mut from = lines.start;
    while from < lines.end {
        let upto = (from + FILL_MAX).min(lines.end);
        let [from_text, upto_text] = [from, upto].map(|value| value.to_string());
        let offset = offset.to_string();
        redis.cli(&["eval", script, "1", stem, &from_text, &upto_text, &epoch, &offset]);
        from = upto;
    }
    let held: u64 = redis.cli(&["dbsize"]).parse().expect("a number of keys");
    assert!(held >= lines.end - lines.start, "Redis holds {held} keys");
}
