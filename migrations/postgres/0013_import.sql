-- Numbers that another system has issued (R9.5): no path of ours took them, and the values below
-- them that nobody brought along are gaps with a reason of their own.
-- The wider conditions hold for every row there is, so no row is read.
-- old binary: refuses to start (the schema is newer than it knows); one that still runs cannot read
-- imported rows, so an import waits until none does

alter table journal
    drop constraint journal_path_known,
    add constraint journal_path_known
        check (path in ('redis', 'database', 'imported')) not valid;

alter table gap
    drop constraint gap_reason_known,
    add constraint gap_reason_known
        check (reason in ('discarded', 'unaccounted', 'collided', 'before-import')) not valid;
