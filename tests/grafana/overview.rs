//! The first page that an operator looks at.

use super::model::{Dashboard, Panel, Row};
use super::promql::{
    by, gauge, increase, of, of_which, per_minute, quantile, quantiles, rate, rate_of, share,
};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "numerator-overview",
        title: "numerator: overview",
        description: "Whether numbers are issued, how fast, and what stands in the way.",
        rows: vec![health(), answers(), waits(), budget(), processes()],
    }
}

fn health() -> Row {
    let panels = vec![
        Panel::stat(
            "Ready",
            "none",
            "numerator:ready".to_owned(),
            "1 while any process can issue numbers.",
        )
        .below(&[(1.0, "green")])
        .see("nothing-is-issued"),
        Panel::stat(
            "Processes",
            "none",
            by("sum", "", &of_which("up", r#"job="numerator""#)),
            "Processes that answer Prometheus.",
        )
        .below(&[(1.0, "green")])
        .see("a-process-is-missing"),
        Panel::stat(
            "Processes not ready",
            "none",
            format!("count({} == 0) or vector(0)", of("numerator_ready")),
            "Processes that answer Prometheus, and are not ready: a balancer leaves them out.",
        )
        .above(&[(1.0, "orange")])
        .see("a-process-does-not-issue"),
        Panel::stat(
            "Redis takes scripts",
            "percentunit",
            by("avg", "", &gauge("max", "partition", "numerator_redis_up")),
            "Share of the partitions in which scripts that write succeed, for at least one \
             process. 0 where no Redis is configured.",
        )
        .below(&[(0.01, "orange"), (1.0, "green")])
        .see("redis-unavailable"),
        Panel::stat(
            "Ledger answers",
            "percentunit",
            gauge("avg", "", "numerator_ledger_up"),
            "Share of the processes whose heartbeat the ledger answers.",
        )
        .below(&[(0.01, "orange"), (1.0, "green")])
        .see("ledger-unavailable"),
        Panel::stat(
            "Duplicates",
            "none",
            gauge("max", "", "numerator_collisions"),
            "Numbers that the ledger saw twice, whenever that was. Must stay 0.",
        )
        .above(&[(1.0, "red")])
        .see("a-suspected-duplicate"),
        Panel::stat(
            "Availability, 30 days",
            "percentunit",
            "avg_over_time(numerator:ready[30d])".to_owned(),
            "Share of the last 30 days in which any process could issue numbers, as far as \
             Prometheus remembers. The aim is 99.5 %, without planned maintenance.",
        )
        .below(&[(0.995, "green")])
        .see("availability-is-low"),
    ];
    Row { title: "Health", panels }
}

fn answers() -> Row {
    let panels = vec![
        Panel::lines(
            "Numbers per minute",
            "short",
            vec![(per_minute("path", "numerator_issued_total"), "{{path}}")],
            "Numbers issued per minute, by who took them: Redis, or the database path.",
        ),
        Panel::lines(
            "Success rate",
            "percentunit",
            vec![(
                share(
                    "numerator_answers_total",
                    r#"outcome=~"issued|replayed""#,
                    r#"outcome!="refused""#,
                ),
                "answered with a number",
            )],
            "Share of the requests that got a number, of those that are not wrong themselves; \
             100 % while nobody asks.",
        )
        .below(&[(0.95, "orange"), (0.995, "green")])
        .see("requests-fail"),
        Panel::lines(
            "Answers by outcome",
            "reqps",
            vec![(rate("outcome", "numerator_answers_total"), "{{outcome}}")],
            "What became of requests for a number.",
        )
        .see("requests-fail"),
        Panel::lines(
            "Problems by slug",
            "reqps",
            vec![(rate("slug", "numerator_problems_total"), "{{slug}}")],
            "HTTP requests answered with a problem, by its slug; docs/api.md says what each means.",
        )
        .see("requests-fail"),
        Panel::lines(
            "Time to a number",
            "s",
            quantiles("numerator_issue_seconds"),
            "From a checked request to its number. The aim is a p95 of 2 s and a p99 of 5 s; \
             ordinarily it is milliseconds. No line while nothing happens.",
        )
        .above(&[(2.0, "orange"), (5.0, "red")])
        .see("long-waits"),
        Panel::lines(
            "HTTP requests by status",
            "reqps",
            vec![(rate("status", "numerator_requests_total"), "{{status}}")],
            "All routes; 499: the client left before it was answered.",
        ),
        Panel::lines(
            "HTTP latency, p95 by route",
            "s",
            vec![(quantile("0.95", "numerator_request_seconds", "le, route"), "{{route}}")],
            "Time to answer an HTTP request. No line while nothing happens.",
        )
        .above(&[(2.0, "orange"), (5.0, "red")]),
    ];
    Row { title: "Answers", panels }
}

fn budget() -> Row {
    let failing = |window| (format!("numerator:answers_failing:ratio_rate{window}"), window);
    let panel = Panel::lines(
        "Answers that fail, by window",
        "percentunit",
        ["5m", "30m", "1h", "2h", "6h", "1d", "3d"].map(failing).to_vec(),
        "Share of the answers that are no number through no fault of the request, over each \
         window. The aim is 0.5 % of 30 days; alerts compare a long window with a short one.",
    );
    let panel = panel.above(&[(0.005, "orange"), (0.072, "red")]).see("the-error-budget-burns");
    Row { title: "Error budget", panels: vec![panel] }
}

fn waits() -> Row {
    let panels = vec![
        Panel::lines(
            "Lock acquisition success",
            "percentunit",
            vec![(
                share(
                    "numerator_lock_acquisitions_total",
                    r#"outcome="granted""#,
                    r#"outcome=~"granted|timeout""#,
                ),
                "granted",
            )],
            "Share of the transactions of the database path that got their locks in time; 100 % \
             while there are none. Redis takes numbers without a lock.",
        )
        .below(&[(0.9, "orange"), (0.95, "green")])
        .see("lock-failures"),
        Panel::lines(
            "Lock wait",
            "s",
            quantiles("numerator_lock_wait_seconds"),
            "How long transactions of the database path wait for their locks. No line while \
             nothing happens.",
        )
        .above(&[(1.0, "orange"), (5.0, "red")])
        .see("long-waits"),
        Panel::lines(
            "Queue wait",
            "s",
            quantiles("numerator_queue_wait_seconds"),
            "How long requests wait for their first flight or transaction. No line while nothing \
             happens.",
        )
        .above(&[(1.0, "orange"), (5.0, "red")])
        .see("long-waits"),
        Panel::lines(
            "Queue length",
            "short",
            vec![(gauge("sum", "partition", "numerator_queue_length"), "partition {{partition}}")],
            "Requests that wait or are under way. At allocator.queue_max, more are refused.",
        )
        .see("long-waits"),
        Panel::lines(
            "Retries",
            "short",
            vec![(
                increase("path, reason", "numerator_retries_total", "1h"),
                "{{path}} {{reason}}",
            )],
            "Flights and transactions tried again within the last hour, by reason.",
        )
        .above(&[(100.0, "orange")])
        .see("many-retries"),
        Panel::bars(
            "Numbers by retries",
            "short",
            (increase("le", "numerator_request_retries_bucket", "1h"), "up to {{le}}"),
            "Numbers of the last hour that needed at most so many retries.",
        )
        .see("many-retries"),
    ];
    Row { title: "Waits and retries", panels }
}

fn processes() -> Row {
    let own = |metric| of_which(metric, r#"job="numerator""#);
    let panels = vec![
        Panel::lines(
            "Ready by process",
            "short",
            vec![(of("numerator_ready"), "{{instance}}")],
            "1 while a new document would get its number from this process, as its /readyz says.",
        )
        .see("a-process-does-not-issue"),
        Panel::lines(
            "Memory",
            "bytes",
            vec![(own("process_resident_memory_bytes"), "{{instance}}")],
            "Memory of each process that is not swapped out.",
        ),
        Panel::lines(
            "Processor",
            "percentunit",
            vec![(rate_of("instance", &own("process_cpu_seconds_total")), "{{instance}}")],
            "Share of a core that each process uses; 200 % are two cores.",
        ),
        Panel::lines(
            "File descriptors",
            "short",
            vec![
                (own("process_open_fds"), "{{instance}}"),
                (by("min", "", &own("process_max_fds")), "bound"),
            ],
            "Connections and files that each process has open, and how many it may have.",
        ),
        Panel::lines(
            "Time until certificates and tokens end",
            "s",
            vec![
                (
                    gauge("min", "certificate", "numerator_certificate_left_seconds"),
                    "{{certificate}}",
                ),
                (gauge("min", "", "numerator_token_left_seconds"), "first token"),
            ],
            "How long the certificates last that processes show or go by, and the first token that \
             ends. No line where there is none.",
        )
        .see("a-certificate-or-a-token-ends"),
    ];
    Row { title: "Processes", panels }
}
