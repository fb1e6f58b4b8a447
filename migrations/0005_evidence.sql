-- Evidence: attempts, the trail of every decision, and one audit record per delivery and cycle.

-- All three are split by kind (retention differs) and by range of the time-ordered delivery id (months): look-ups prune,
-- uniqueness holds across partitions, and retention drops whole months. There is no default partition.

create table attempt (
  kind text not null,
  delivery_id text collate "C" not null,
  attempt int not null,
  cycle int not null,
  claimed_at timestamptz not null,
  claimed_by text not null,
  url text not null,
  outcome text,
  late boolean not null default false,
  status int,
  error text,
  detail text,
  started_at timestamptz,
  finished_at timestamptz,
  duration_ms int,
  retry_after_seconds int,
  retry_after_clamped boolean not null default false,
  next_due_at timestamptz,
  response_excerpt text,
  primary key (delivery_id, attempt, kind),
  constraint attempt_outcome check (outcome in ('delivered', 'retryable', 'terminal', 'unknown')),
  constraint attempt_number check (attempt >= 1)
) partition by list (kind);

-- Append-only. Each entry's hash covers the one before it, so that none can be changed, moved or left out unseen.
create table trail (
  kind text not null,
  delivery_id text collate "C" not null,
  entry int not null,
  at timestamptz not null,
  event text not null,
  actor text not null,
  detail text not null,
  sha256 bytea not null,
  primary key (delivery_id, entry, kind)
) partition by list (kind);

create table audit_record (
  kind text not null,
  delivery_id text collate "C" not null,
  cycle int not null,
  contract_ref text,
  endpoint_id text collate "C" not null,
  endpoint_url text not null,
  state text not null,
  dead_reason text,
  idempotency_key text not null,
  body_sha256 bytea not null,
  attempts int not null,
  first_attempt_at timestamptz,
  finished_at timestamptz not null,
  due_at timestamptz not null,
  deadline_at timestamptz,
  revision int not null,
  in_time boolean not null,
  actor text not null,
  trail_length int not null,
  trail_sha256 bytea not null,
  primary key (delivery_id, cycle, kind),
  constraint audit_record_state check (state in ('delivered', 'dead_lettered', 'cancelled'))
) partition by list (kind);

create index audit_record_contract on audit_record (contract_ref, finished_at) where contract_ref is not null;

do $$
declare
  parent text;
  class text;
begin
  foreach parent in array array['attempt', 'trail', 'audit_record'] loop
    foreach class in array array['reminder', 'event'] loop
      execute format(
        'create table %I partition of %I for values in (%L) partition by range (delivery_id)',
        parent || '_' || class, parent, class);
    end loop;
  end loop;
end
$$;

-- Entry n of a chain: SHA-256 over the hash before it and the entry as text. The instant is written to the microsecond.
create function trail_hash(before bytea, entry int, at timestamptz, event text, actor text, detail text)
returns bytea
language sql
stable
as $$
  select sha256(before || convert_to(
    entry || E'\n' || to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || E'\n'
    || event || E'\n' || actor || E'\n' || detail, 'UTF8'))
$$;

-- Makes the partitions of this month and of those ahead; harmless when they exist. The first one of a table is open
-- towards the past, so that a clock that is behind loses nothing.
create function ensure_partitions(months_ahead int)
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
  foreach parent in array array['attempt', 'trail', 'audit_record'] loop
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
          made := made + 1;
        end if;
      end loop;
    end loop;
  end loop;
  return made;
end
$$;

select ensure_partitions(3);

create function refuse_change()
returns trigger
language plpgsql
as $$
begin
  raise exception '% is append-only', tg_table_name
    using errcode = 'insufficient_privilege';
end
$$;

-- Dropping a whole month is retention; changing or removing a row is tampering.
create trigger trail_append_only
before update or delete on trail
for each row
execute function refuse_change();

create trigger audit_record_append_only
before update or delete on audit_record
for each row
execute function refuse_change();
