-- Seals: what was decided is hashed into trees, and each tree is chained to the one before and signed.

-- What waits to be sealed. Filled with the evidence itself, in its commit, so that nothing can be passed over; emptied
-- with the seal, in its commit, so that nothing is sealed twice.
create table unsealed (
  unsealed_id bigint generated always as identity primary key,
  kind text not null,
  subject_id text collate "C" not null,
  -- Of the audit record; null: the trail alone, or an operation.
  cycle int,
  -- The trail entry up to which it is sealed; null for an operation.
  entry int,
  constraint unsealed_kind check (kind in ('reminder', 'event', 'operation'))
);

-- Append-only, and small enough to be kept for good: what is dropped by retention stays provable.
create table seal (
  seal_number int primary key,
  -- Canonical JSON; what is signed and hashed, to the letter.
  statement text not null,
  signature bytea not null,
  sha256 bytea not null,
  -- The hashes of the leaves, 32 bytes each, in order.
  leaves bytea not null,
  -- What is needed to go on with the tree of all seals: 32 bytes for each bit that is set in seal_number.
  peaks bytea not null
);

-- Uncompressed, so that one hash is read without the others.
alter table seal alter column leaves set storage external;

-- Which leaf is whose. Append-only, split as the evidence is, so that it is dropped with it.
create table seal_leaf (
  kind text not null,
  subject_id text collate "C" not null,
  seal_number int not null,
  leaf_index int not null,
  cycle int,
  entry int,
  content_sha256 bytea,
  primary key (subject_id, seal_number, leaf_index, kind)
) partition by list (kind);

create table seal_leaf_reminder partition of seal_leaf for values in ('reminder') partition by range (subject_id);
create table seal_leaf_event partition of seal_leaf for values in ('event') partition by range (subject_id);
create table seal_leaf_operation partition of seal_leaf for values in ('operation');

create index seal_leaf_place on seal_leaf (seal_number, leaf_index);

-- As in 0005, with the leaves of seals, and refusing to empty what is append-only: such a trigger is not inherited.
create or replace function ensure_partitions(months_ahead int)
returns int
language plpgsql
security definer
set search_path from current
as $$
declare
  parent text;
  class text;
  branch text;
  month_at timestamptz;
  part text;
  lower text;
  upper text;
  made int := 0;
begin
  -- Several processes may call at once.
  perform pg_advisory_xact_lock(hashtext('duepost.ensure_partitions'));
  foreach parent in array array['attempt', 'trail', 'audit_record', 'seal_leaf'] loop
    foreach class in array array['reminder', 'event'] loop
      branch := parent || '_' || class;
      for offset_months in 0 .. months_ahead loop
        month_at := (date_trunc('month', now() at time zone 'UTC') + make_interval(months => offset_months)) at time zone 'UTC';
        part := branch || '_' || to_char(month_at at time zone 'UTC', 'YYYY_MM');
        if to_regclass(quote_ident(part)) is null then
          upper := quote_literal(id_lower_bound(
            'dlv', ((month_at at time zone 'UTC') + interval '1 month') at time zone 'UTC'));
          lower := case
            when exists (select from pg_inherits where inhparent = branch::regclass)
            then quote_literal(id_lower_bound('dlv', month_at))
            else 'minvalue'
          end;
          execute format(
            'create table %I partition of %I for values from (%s) to (%s)%s',
            part, branch, lower, upper,
            case when parent = 'attempt' then ' with (fillfactor = 75)' else '' end);
          if parent <> 'attempt' then
            execute format(
              'create trigger append_only before truncate on %I for each statement execute function refuse_change()',
              part);
          end if;
          made := made + 1;
        end if;
      end loop;
    end loop;
  end loop;
  return made;
end
$$;

select ensure_partitions(3);

do $$
declare
  part regclass;
begin
  for part in
    select i.inhrelid::regclass
      from pg_inherits i
     where i.inhparent in (
       'trail_reminder'::regclass, 'trail_event'::regclass,
       'audit_record_reminder'::regclass, 'audit_record_event'::regclass)
  loop
    execute format(
      'create trigger append_only before truncate on %s for each statement execute function refuse_change()', part);
  end loop;
end
$$;

create trigger operation_no_truncate
before truncate on operation
for each statement
execute function refuse_change();

create trigger seal_append_only
before update or delete on seal
for each row
execute function refuse_change();

create trigger seal_no_truncate
before truncate on seal
for each statement
execute function refuse_change();

create trigger seal_leaf_append_only
before update or delete on seal_leaf
for each row
execute function refuse_change();

create trigger seal_leaf_no_truncate
before truncate on seal_leaf_operation
for each statement
execute function refuse_change();

create function queue_records()
returns trigger
language plpgsql
as $$
begin
  insert into unsealed (kind, subject_id, cycle, entry)
  select kind, delivery_id, cycle, trail_length
    from added;
  return null;
end
$$;

-- Once per statement: a batch of settled attempts pays for it once.
create trigger audit_record_queued
after insert on audit_record
referencing new table as added
for each statement
execute function queue_records();

create function queue_entry()
returns trigger
language plpgsql
as $$
begin
  insert into unsealed (kind, subject_id, entry)
  values (new.kind, new.delivery_id, new.entry);
  return null;
end
$$;

-- What no audit record will cover: what comes after the end. And when a reminder is due, because its end may be a year
-- away. The other entries never enter the function.
create trigger trail_queued
after insert on trail
for each row
when (
  new.event in ('late_result', 'erase')
  or (new.kind = 'reminder' and new.event in ('schedule', 'reschedule', 'recalculate'))
)
execute function queue_entry();

create function queue_operation()
returns trigger
language plpgsql
as $$
begin
  insert into unsealed (kind, subject_id)
  values ('operation', new.operation_id::text);
  return null;
end
$$;

create trigger operation_queued
after insert on operation
for each row
execute function queue_operation();

-- What was there before.
insert into unsealed (kind, subject_id, cycle, entry)
select kind, delivery_id, cycle, trail_length
  from audit_record;

insert into unsealed (kind, subject_id, entry)
select kind, delivery_id, entry
  from trail
 where event in ('late_result', 'erase')
    or (kind = 'reminder' and event in ('schedule', 'reschedule', 'recalculate'));

insert into unsealed (kind, subject_id)
select 'operation', operation_id::text
  from operation;
