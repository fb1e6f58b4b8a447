-- Retention: what may not be dropped, what was, and by which rights.

-- Nothing of a contract on hold is dropped or erased.
create table legal_hold (
  hold_id bigint generated always as identity primary key,
  contract_ref text not null,
  placed_at timestamptz not null default now(),
  placed_by text not null,
  reason text not null,
  released_at timestamptz,
  released_by text,
  release_reason text,
  constraint legal_hold_contract_ref check (length(contract_ref) between 1 and 200),
  constraint legal_hold_released check (num_nulls(released_at, released_by, release_reason) in (0, 3))
);

create unique index legal_hold_in_force on legal_hold (contract_ref) where released_at is null;

-- How far dropping has come; what was dropped is told by operations, which are sealed.
create table retention_month (
  kind text not null,
  -- `2026-10`.
  month text not null,
  begun_at timestamptz not null default now(),
  dropped_at timestamptz,
  primary key (kind, month)
);

-- Replaces the partitions of a month by such that hold the evidence of the deliveries that are left, or by none.
-- Returns how many are left; refuses when they are so many that copying would take long.
create function drop_month(class text, month text, max_kept int)
returns int
language plpgsql
security definer
set search_path from current
set lock_timeout = '2s'
as $$
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
$$;

revoke execute on function drop_month(text, text, int) from public;

-- Gives a role what the running product needs, and nothing that changes evidence: it may add to what is append-only, and
-- has no rights on single partitions. For the owner to call after `duepost migrate`, with the name of a role of its own.
create function grant_to_application(role_name text)
returns void
language plpgsql
set search_path from current
as $$
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
$$;
