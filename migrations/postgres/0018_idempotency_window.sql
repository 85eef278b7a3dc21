-- How long idempotency records last is the deployment's, like the number of partitions: a process
-- with a shorter window would forget for the others, and a retry would get a second number.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on
-- with its own window.

-- In milliseconds; null until the first process of this version has started.
alter table deployment add column idempotency_window_ms bigint
    constraint deployment_idempotency_window_at_least_1 check (idempotency_window_ms >= 1);
