-- Deliveries: the fact; a state machine that the database itself keeps.

create table delivery (
  delivery_id text collate "C" primary key,
  reminder_id text collate "C",
  event_id text collate "C",
  endpoint_id text collate "C" not null,
  contract_ref text,
  idempotency_key text not null,
  state text not null,
  -- When the next attempt is due; cleared at the end, so that the index holds only what is alive.
  due_at timestamptz,
  -- When the first attempt is due, as computed or asked for: what an auditor compares with.
  scheduled_at timestamptz not null,
  deadline_at timestamptz,
  attempt int not null default 0,
  -- The attempt number at which this cycle began: a replay gives a new budget, numbers go on.
  attempt_base int not null default 0,
  cycle int not null default 1,
  -- Moves with every reschedule: a decision taken under an older one is recognised.
  revision int not null default 1,
  claimed_at timestamptz,
  claim_expires_at timestamptz,
  claimed_by text,
  dead_reason text,
  at_risk_at timestamptz,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  -- Head of the delivery's hash chain of trail entries.
  trail_length int not null,
  trail_sha256 bytea not null,
  constraint delivery_state check (state in ('due', 'in_flight', 'held', 'delivered', 'dead_lettered', 'cancelled')),
  constraint delivery_one_source check (num_nonnulls(reminder_id, event_id) = 1),
  constraint delivery_due_until_ended check ((due_at is null) = (state in ('delivered', 'dead_lettered', 'cancelled'))),
  constraint delivery_ended check ((ended_at is null) = (due_at is not null)),
  constraint delivery_claim check ((claim_expires_at is not null) = (state = 'in_flight')),
  constraint delivery_dead_reason check ((dead_reason is not null) = (state = 'dead_lettered')),
  constraint delivery_dead_reason_known check (
    dead_reason in ('terminal_response', 'attempts_exhausted', 'deadline_passed', 'endpoint_gone')),
  constraint delivery_attempt check (attempt >= attempt_base and attempt_base >= 0 and cycle >= 1)
) with (fillfactor = 60);

create index delivery_due on delivery (due_at, delivery_id) where due_at is not null;
create index delivery_endpoint on delivery (endpoint_id, delivery_id);
create index delivery_dead on delivery (delivery_id) where dead_reason is not null;

create function refuse_transition()
returns trigger
language plpgsql
as $$
begin
  raise exception 'delivery % may not go from % to %', old.delivery_id, old.state, new.state
    using errcode = 'check_violation';
end
$$;

-- Equal to TRANSITIONS in src/domain/state.ts, which a test proves; a legal move never enters the function.
create trigger delivery_transition
before update of state on delivery
for each row
when (
  old.state <> new.state
  and (old.state || '>' || new.state) not in (
    'due>in_flight',
    'in_flight>delivered',
    'in_flight>due',
    'in_flight>dead_lettered',
    'due>delivered',
    'held>delivered',
    'due>dead_lettered',
    'held>dead_lettered',
    'due>held',
    'in_flight>held',
    'held>due',
    'due>cancelled',
    'held>cancelled',
    'dead_lettered>due',
    'dead_lettered>held',
    'cancelled>due',
    'cancelled>held'
  )
)
execute function refuse_transition();
