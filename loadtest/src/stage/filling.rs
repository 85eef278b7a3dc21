//! Counters written into both stores as if callers had touched them: a million in seconds.
//!
//! What is written is what seeding leaves: a row in the ledger that is seeded and not used yet, and
//! a counter in Redis of the open epoch. Lines are the last seven digits of a counter's key.

use super::Stage;

/// Counters written to Redis in one call.
const FILL_MAX: u64 = 100_000;

/// Writes the lines from 1 up to `lines`, like the counter whose key in the ledger is `key`: that
/// ends in line 0, and a caller has touched it. `schema` is the prefix of the keys in Redis too.
pub(crate) fn write(stage: &Stage, schema: &str, key: &str, lines: u64) {
    let (postgres, redis) = (&stage.postgres, &stage.redis);
    let first_id = postgres.sql(&format!("select max(counter_id) + 1 from {schema}.counter"));
    postgres.sql(&format!(
        "insert into {schema}.counter (series_id, serial, key, partition_id, epoch, origin, \
         start_value, taken, ceiling, step, seeded_by, seeded_at_us) \
         select series_id, serial, \
         replace(key, '0000000', lpad(line::text, 7, '0')), partition_id, epoch, origin, origin, \
         origin, origin + 10 * step, step, seeded_by, seeded_at_us \
         from {schema}.counter, generate_series(1, {lines} - 1) line \
         where key = '{key}' order by line"
    ));
    postgres.sql(&format!("analyze {schema}.counter"));
    let epoch = postgres.sql(&format!(
        "select p.epoch from {schema}.partition p join {schema}.counter c using (partition_id) \
         where c.key = '{key}'"
    ));
    let keys = redis.cli(&["--scan", "--pattern", &format!("{schema}:*:c:*{key}")]);
    let touched = keys.lines().next().expect("a counter that was taken from");
    let stem = &touched[..touched.len() - 7];
    let script = "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do redis.call('hset', \
                  KEYS[1] .. string.format('%07d', i), 'epoch', ARGV[3], 'value', '0', 'check', \
                  '0', 'ceiling', '10', 'id', string.format('%d', ARGV[4] + i - 1)) end";
    let mut from = 1;
    while from < lines {
        let upto = (from + FILL_MAX).min(lines);
        let [from_text, upto_text] = [from, upto].map(|value| value.to_string());
        redis.cli(&["eval", script, "1", stem, &from_text, &upto_text, &epoch, &first_id]);
        from = upto;
    }
    let held: u64 = redis.cli(&["dbsize"]).parse().expect("a number of keys");
    assert!(held >= lines - 1, "Redis holds {held} keys");
}
