-- A series is deactivated, never erased (R4.3): whether it serves requests is part of each of its
-- versions, so that turning it off and on has its user, time and reason like any other change
-- (R4.2). `series.active_version` is the version in force, of an active series or of another.
-- `used_since`: the first version under which a counter of the series may have been created. It
-- rises with each change of a series that has no counter yet, and a request of an earlier version
-- then creates none: what numbers of a series may look like is said by these versions alone.
-- old binary: refuses to start (the schema is newer than it knows); one that still runs goes on
-- serving series that are deactivated

alter table series_version add column active integer not null default 1
    constraint series_version_active_known check (active in (0, 1));

alter table series add column used_since integer not null default 1
    constraint series_used_since_at_least_1 check (used_since >= 1);
