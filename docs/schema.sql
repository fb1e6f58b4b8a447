CREATE OR REPLACE FUNCTION drop_month(class text, month text, max_kept integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO '$user', 'public'
 SET lock_timeout TO '2s'
AS $function$
declare
  parents constant text[] := array['attempt', 'trail', 'audit_record', 'seal_leaf'];
  parent text;
  branch text;
  part text;
  key_column text;
  bounds text;
  upper text;
  lower text;
  kept text[];
begin
  if class not in ('reminder', 'event') or month !~ '^\d{4}-\d\d$' then
    raise exception 'there is no month % of %', month, class;
  end if;
  -- From here on nothing can be appended: whoever replays a delivery meanwhile waits, and then finds no place for it.
  foreach parent in array parents loop
    execute format('lock table %I in access exclusive mode', parent || '_' || class);
  end loop;
  part := 'trail_' || class || '_' || replace(month, '-', '_');
  if to_regclass(quote_ident(part)) is null then
    return 0;
  end if;
  select pg_get_expr(c.relpartbound, c.oid) into bounds from pg_class c where c.oid = part::regclass;
  upper := substring(bounds from 'TO \(''([^'']+)''\)');
  lower := coalesce(substring(bounds from 'FROM \(''([^'']+)''\)'), '');
  select coalesce(array_agg(delivery_id), '{}')
    into kept
    from (
      select d.delivery_id
        from delivery d
       where d.delivery_id >= lower
         and d.delivery_id < upper
         and (d.reminder_id is not null) = (class = 'reminder')
       limit max_kept + 1
    ) as remaining;
  if cardinality(kept) > max_kept then
    raise exception 'month % of % has more than % deliveries left', month, class, max_kept
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  foreach parent in array parents loop
    branch := parent || '_' || class;
    part := branch || '_' || replace(month, '-', '_');
    continue when to_regclass(quote_ident(part)) is null;
    key_column := case parent when 'seal_leaf' then 'subject_id' else 'delivery_id' end;
    select pg_get_expr(c.relpartbound, c.oid) into bounds from pg_class c where c.oid = part::regclass;
    if cardinality(kept) > 0 then
      execute format('create table %I (like %I including all)', part || '_kept', branch);
      execute format('insert into %I select * from %I where %I = any($1)', part || '_kept', part, key_column) using kept;
    end if;
    execute format('alter table %I detach partition %I', branch, part);
    execute format('drop table %I', part);
    if cardinality(kept) > 0 then
      execute format('alter table %I rename to %I', part || '_kept', part);
      execute format('alter table %I attach partition %I %s', branch, part, bounds);
      if parent <> 'attempt' then
        execute format(
          'create trigger append_only before truncate on %I for each statement execute function refuse_change()', part);
      end if;
    end if;
  end loop;
  return cardinality(kept);
end
$function$;

CREATE OR REPLACE FUNCTION ensure_partitions(months_ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO '$user', 'public'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION grant_to_application(role_name text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO '$user', 'public'
AS $function$
declare
  relation record;
begin
  execute format('grant usage on schema %I to %I', current_schema(), role_name);
  for relation in
    select c.oid::regclass as name, c.relname
      from pg_class c
     where c.relnamespace = current_schema()::regnamespace
       and c.relkind in ('r', 'p')
       and not c.relispartition
  loop
    execute format('revoke all on %s from %I', relation.name, role_name);
    execute format(
      'grant %s on %s to %I',
      case
        when relation.relname in ('trail', 'audit_record', 'operation', 'seal', 'seal_leaf') then 'select, insert'
        when relation.relname = 'migration' then 'select'
        when relation.relname = 'attempt' then 'select, insert, update'
        else 'select, insert, update, delete'
      end,
      relation.name, role_name);
  end loop;
  execute format('grant execute on function drop_month(text, text, int) to %I', role_name);
end
$function$;

CREATE OR REPLACE FUNCTION id_lower_bound(prefix text, at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE STRICT
AS $function$
  select prefix || '_' || string_agg(
           substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((ms >> (45 - 5 * i)) & 31)::int, 1), '' order by i)
    from (select floor(extract(epoch from at) * 1000)::bigint as ms) as instant,
         generate_series(0, 9) as i
$function$;

CREATE OR REPLACE FUNCTION queue_entry()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into unsealed (kind, subject_id, entry)
  values (new.kind, new.delivery_id, new.entry);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION queue_operation()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into unsealed (kind, subject_id)
  values ('operation', new.operation_id::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION queue_records()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into unsealed (kind, subject_id, cycle, entry)
  select kind, delivery_id, cycle, trail_length
    from added;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% is append-only', tg_table_name
    using errcode = 'insufficient_privilege';
end
$function$;

CREATE OR REPLACE FUNCTION refuse_transition()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'delivery % may not go from % to %', old.delivery_id, old.state, new.state
    using errcode = 'check_violation';
end
$function$;

CREATE OR REPLACE FUNCTION trail_hash(before bytea, entry integer, at timestamp with time zone, event text, actor text, detail text)
 RETURNS bytea
 LANGUAGE sql
 STABLE
AS $function$
  select sha256(before || convert_to(
    entry || E'\n' || to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || E'\n'
    || event || E'\n' || actor || E'\n' || detail, 'UTF8'))
$function$;

create table api_key (
  key_id text collate "C" not null,
  name text not null,
  key_sha256 bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint api_key_key_sha256_key UNIQUE (key_sha256),
  constraint api_key_pkey PRIMARY KEY (key_id),
  constraint api_key_scopes CHECK (((scopes <@ ARRAY['publish'::text, 'read'::text, 'operate'::text, 'admin'::text]) AND (cardinality(scopes) > 0)))
);
CREATE UNIQUE INDEX api_key_name ON api_key USING btree (name) WHERE (revoked_at IS NULL);

create table attempt (
  kind text not null,
  delivery_id text collate "C" not null,
  attempt integer not null,
  cycle integer not null,
  claimed_at timestamp with time zone not null,
  claimed_by text not null,
  url text not null,
  outcome text,
  late boolean not null default false,
  status integer,
  error text,
  detail text,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  duration_ms integer,
  retry_after_seconds integer,
  retry_after_clamped boolean not null default false,
  next_due_at timestamp with time zone,
  response_excerpt text,
  shadow boolean not null default false,
  constraint attempt_number CHECK ((attempt >= 1)),
  constraint attempt_outcome CHECK ((outcome = ANY (ARRAY['delivered'::text, 'retryable'::text, 'terminal'::text, 'unknown'::text]))),
  constraint attempt_pkey PRIMARY KEY (delivery_id, attempt, kind)
) partition by LIST (kind);

create table attempt_event partition of attempt FOR VALUES IN ('event') partition by RANGE (delivery_id);

create table attempt_reminder partition of attempt FOR VALUES IN ('reminder') partition by RANGE (delivery_id);

create table audit_record (
  kind text not null,
  delivery_id text collate "C" not null,
  cycle integer not null,
  contract_ref text,
  endpoint_id text collate "C" not null,
  endpoint_url text not null,
  state text not null,
  dead_reason text,
  idempotency_key text not null,
  body_sha256 bytea not null,
  attempts integer not null,
  first_attempt_at timestamp with time zone,
  finished_at timestamp with time zone not null,
  due_at timestamp with time zone not null,
  deadline_at timestamp with time zone,
  revision integer not null,
  in_time boolean not null,
  actor text not null,
  trail_length integer not null,
  trail_sha256 bytea not null,
  shadow boolean not null default false,
  constraint audit_record_pkey PRIMARY KEY (delivery_id, cycle, kind),
  constraint audit_record_state CHECK ((state = ANY (ARRAY['delivered'::text, 'dead_lettered'::text, 'cancelled'::text])))
) partition by LIST (kind);
CREATE INDEX audit_record_contract ON ONLY audit_record USING btree (contract_ref, finished_at) WHERE (contract_ref IS NOT NULL);
CREATE TRIGGER audit_record_append_only BEFORE DELETE OR UPDATE ON audit_record FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_record_queued AFTER INSERT ON audit_record REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION queue_records();

create table audit_record_event partition of audit_record FOR VALUES IN ('event') partition by RANGE (delivery_id);

create table audit_record_reminder partition of audit_record FOR VALUES IN ('reminder') partition by RANGE (delivery_id);

create table body (
  source_id text collate "C" not null,
  bytes bytea,
  sha256 bytea not null,
  data_offset integer not null,
  erased_at timestamp with time zone,
  constraint body_pkey PRIMARY KEY (source_id),
  constraint body_present CHECK (((bytes IS NULL) = (erased_at IS NOT NULL)))
);

create table delivery (
  delivery_id text collate "C" not null,
  reminder_id text collate "C",
  event_id text collate "C",
  endpoint_id text collate "C" not null,
  contract_ref text,
  idempotency_key text not null,
  state text not null,
  due_at timestamp with time zone,
  scheduled_at timestamp with time zone not null,
  deadline_at timestamp with time zone,
  attempt integer not null default 0,
  attempt_base integer not null default 0,
  cycle integer not null default 1,
  revision integer not null default 1,
  claimed_at timestamp with time zone,
  claim_expires_at timestamp with time zone,
  claimed_by text,
  dead_reason text,
  at_risk_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  trail_length integer not null,
  trail_sha256 bytea not null,
  trace_parent text,
  manual_attempts integer not null default 0,
  unsent_attempts integer not null default 0,
  constraint delivery_attempt CHECK (((attempt >= attempt_base) AND (attempt_base >= 0) AND (cycle >= 1))),
  constraint delivery_claim CHECK (((claim_expires_at IS NOT NULL) = (state = 'in_flight'::text))),
  constraint delivery_dead_reason CHECK (((dead_reason IS NOT NULL) = (state = 'dead_lettered'::text))),
  constraint delivery_dead_reason_known CHECK ((dead_reason = ANY (ARRAY['terminal_response'::text, 'attempts_exhausted'::text, 'deadline_passed'::text, 'endpoint_gone'::text]))),
  constraint delivery_due_until_ended CHECK (((due_at IS NULL) = (state = ANY (ARRAY['delivered'::text, 'dead_lettered'::text, 'cancelled'::text])))),
  constraint delivery_ended CHECK (((ended_at IS NULL) = (due_at IS NOT NULL))),
  constraint delivery_manual_attempts CHECK ((manual_attempts >= 0)),
  constraint delivery_one_source CHECK ((num_nonnulls(reminder_id, event_id) = 1)),
  constraint delivery_pkey PRIMARY KEY (delivery_id),
  constraint delivery_state CHECK ((state = ANY (ARRAY['due'::text, 'in_flight'::text, 'held'::text, 'delivered'::text, 'dead_lettered'::text, 'cancelled'::text]))),
  constraint delivery_unsent_attempts CHECK ((unsent_attempts >= 0))
) with (fillfactor=60);
CREATE INDEX delivery_at_risk ON delivery USING btree (deadline_at, delivery_id) WHERE ((at_risk_at IS NOT NULL) AND (due_at IS NOT NULL));
CREATE INDEX delivery_dead ON delivery USING btree (delivery_id) WHERE (dead_reason IS NOT NULL);
CREATE INDEX delivery_due ON delivery USING btree (due_at, delivery_id) WHERE (due_at IS NOT NULL);
CREATE INDEX delivery_endpoint ON delivery USING btree (endpoint_id, delivery_id);
CREATE TRIGGER delivery_transition BEFORE UPDATE OF state ON delivery FOR EACH ROW WHEN (old.state <> new.state AND (((old.state || '>'::text) || new.state) <> ALL (ARRAY['due>in_flight'::text, 'in_flight>delivered'::text, 'in_flight>due'::text, 'in_flight>dead_lettered'::text, 'due>delivered'::text, 'held>delivered'::text, 'due>dead_lettered'::text, 'held>dead_lettered'::text, 'due>held'::text, 'in_flight>held'::text, 'held>due'::text, 'due>cancelled'::text, 'held>cancelled'::text, 'dead_lettered>due'::text, 'dead_lettered>held'::text, 'cancelled>due'::text, 'cancelled>held'::text]))) EXECUTE FUNCTION refuse_transition();

create table endpoint (
  endpoint_id text collate "C" not null,
  name text not null,
  url text not null,
  status text not null default 'active'::text,
  status_reason text,
  mode text not null default 'live'::text,
  event_types text[] not null default ARRAY['*'::text],
  policy jsonb,
  max_in_flight integer,
  headers jsonb not null default '{}'::jsonb,
  tls jsonb,
  revision integer not null default 1,
  consecutive_failures integer not null default 0,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  tls_ca text,
  tls_certificate text,
  tls_key bytea,
  constraint endpoint_deleted_is_disabled CHECK (((deleted_at IS NULL) OR (status = 'disabled'::text))),
  constraint endpoint_max_in_flight CHECK (((max_in_flight >= 1) AND (max_in_flight <= 10000))),
  constraint endpoint_mode CHECK ((mode = ANY (ARRAY['live'::text, 'shadow'::text]))),
  constraint endpoint_pkey PRIMARY KEY (endpoint_id),
  constraint endpoint_status CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text]))),
  constraint endpoint_tls_key CHECK (((tls_certificate IS NULL) = (tls_key IS NULL))),
  constraint endpoint_tls_shown CHECK (((tls IS NULL) = ((tls_ca IS NULL) AND (tls_certificate IS NULL))))
) with (fillfactor=70);
CREATE INDEX endpoint_event_types ON endpoint USING gin (event_types) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX endpoint_name ON endpoint USING btree (name) WHERE (deleted_at IS NULL);

create table endpoint_secret (
  endpoint_id text collate "C" not null,
  secret_number integer not null,
  ciphertext bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  constraint endpoint_secret_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES endpoint(endpoint_id),
  constraint endpoint_secret_pkey PRIMARY KEY (endpoint_id, secret_number)
);

create table event (
  event_id text collate "C" not null,
  idempotency_key text collate "C" not null,
  content_sha256 bytea not null,
  type text not null,
  contract_ref text,
  answer jsonb not null,
  created_at timestamp with time zone not null default now(),
  constraint event_contract_ref CHECK (((length(contract_ref) >= 1) AND (length(contract_ref) <= 200))),
  constraint event_idempotency_key_key UNIQUE (idempotency_key),
  constraint event_pkey PRIMARY KEY (event_id)
);
CREATE INDEX event_contract ON event USING btree (contract_ref, event_id) WHERE (contract_ref IS NOT NULL);

create table legal_hold (
  hold_id bigint generated always as identity not null,
  contract_ref text not null,
  placed_at timestamp with time zone not null default now(),
  placed_by text not null,
  reason text not null,
  released_at timestamp with time zone,
  released_by text,
  release_reason text,
  constraint legal_hold_contract_ref CHECK (((length(contract_ref) >= 1) AND (length(contract_ref) <= 200))),
  constraint legal_hold_pkey PRIMARY KEY (hold_id),
  constraint legal_hold_released CHECK ((num_nulls(released_at, released_by, release_reason) = ANY (ARRAY[0, 3])))
);
CREATE UNIQUE INDEX legal_hold_in_force ON legal_hold USING btree (contract_ref) WHERE (released_at IS NULL);

create table notice (
  notice_id bigint generated always as identity not null,
  created_at timestamp with time zone not null default now(),
  name text not null,
  body jsonb not null,
  constraint notice_pkey PRIMARY KEY (notice_id)
);

create table operation (
  operation_id bigint generated always as identity not null,
  at timestamp with time zone not null default now(),
  subject_id text collate "C" not null,
  event text not null,
  actor text not null,
  detail jsonb not null,
  constraint operation_pkey PRIMARY KEY (operation_id)
);
CREATE INDEX operation_subject ON operation USING btree (subject_id, operation_id);
CREATE TRIGGER operation_append_only BEFORE DELETE OR UPDATE ON operation FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operation_no_truncate BEFORE TRUNCATE ON operation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operation_queued AFTER INSERT ON operation FOR EACH ROW EXECUTE FUNCTION queue_operation();

create table reminder (
  reminder_id text collate "C" not null,
  delivery_id text collate "C" not null,
  idempotency_key text collate "C" not null,
  content_sha256 bytea not null,
  endpoint_id text collate "C" not null,
  contract_ref text not null,
  type text not null,
  renewal_date date not null,
  notice_period text not null,
  jurisdiction text not null,
  time_zone_given text,
  time_zone text not null,
  deadline_period text,
  deadline_given_at timestamp with time zone,
  due_at timestamp with time zone not null,
  deadline_at timestamp with time zone not null,
  late_start boolean not null,
  due_proof jsonb not null,
  revision integer not null default 1,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint reminder_contract_ref CHECK (((length(contract_ref) >= 1) AND (length(contract_ref) <= 200))),
  constraint reminder_idempotency_key_key UNIQUE (idempotency_key),
  constraint reminder_pkey PRIMARY KEY (reminder_id)
);
CREATE INDEX reminder_contract ON reminder USING btree (contract_ref, reminder_id);

create table retention_month (
  kind text not null,
  month text not null,
  begun_at timestamp with time zone not null default now(),
  dropped_at timestamp with time zone,
  constraint retention_month_pkey PRIMARY KEY (kind, month)
);

create table seal (
  seal_number integer not null,
  statement text not null,
  signature bytea not null,
  sha256 bytea not null,
  leaves bytea not null,
  peaks bytea not null,
  constraint seal_pkey PRIMARY KEY (seal_number)
);
CREATE TRIGGER seal_append_only BEFORE DELETE OR UPDATE ON seal FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER seal_no_truncate BEFORE TRUNCATE ON seal FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table seal_leaf (
  kind text not null,
  subject_id text collate "C" not null,
  seal_number integer not null,
  leaf_index integer not null,
  cycle integer,
  entry integer,
  content_sha256 bytea,
  constraint seal_leaf_pkey PRIMARY KEY (subject_id, seal_number, leaf_index, kind)
) partition by LIST (kind);
CREATE INDEX seal_leaf_place ON ONLY seal_leaf USING btree (seal_number, leaf_index);
CREATE TRIGGER seal_leaf_append_only BEFORE DELETE OR UPDATE ON seal_leaf FOR EACH ROW EXECUTE FUNCTION refuse_change();

create table seal_leaf_event partition of seal_leaf FOR VALUES IN ('event') partition by RANGE (subject_id);

create table seal_leaf_operation partition of seal_leaf FOR VALUES IN ('operation');

create table seal_leaf_reminder partition of seal_leaf FOR VALUES IN ('reminder') partition by RANGE (subject_id);

create table trail (
  kind text not null,
  delivery_id text collate "C" not null,
  entry integer not null,
  at timestamp with time zone not null,
  event text not null,
  actor text not null,
  detail text not null,
  sha256 bytea not null,
  constraint trail_pkey PRIMARY KEY (delivery_id, entry, kind)
) partition by LIST (kind);
CREATE TRIGGER trail_append_only BEFORE DELETE OR UPDATE ON trail FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER trail_queued AFTER INSERT ON trail FOR EACH ROW WHEN ((new.event = ANY (ARRAY['late_result'::text, 'erase'::text])) OR new.kind = 'reminder'::text AND (new.event = ANY (ARRAY['schedule'::text, 'reschedule'::text, 'recalculate'::text]))) EXECUTE FUNCTION queue_entry();

create table trail_event partition of trail FOR VALUES IN ('event') partition by RANGE (delivery_id);

create table trail_reminder partition of trail FOR VALUES IN ('reminder') partition by RANGE (delivery_id);

create table unsealed (
  unsealed_id bigint generated always as identity not null,
  kind text not null,
  subject_id text collate "C" not null,
  cycle integer,
  entry integer,
  constraint unsealed_kind CHECK ((kind = ANY (ARRAY['reminder'::text, 'event'::text, 'operation'::text]))),
  constraint unsealed_pkey PRIMARY KEY (unsealed_id)
);
CREATE INDEX unsealed_subject ON unsealed USING btree (subject_id);

create table watermark (
  one boolean not null default true,
  due_at timestamp with time zone not null,
  delivery_id text collate "C" not null,
  moved_at timestamp with time zone not null,
  constraint watermark_one CHECK (one),
  constraint watermark_pkey PRIMARY KEY (one)
);
