-- What was asked for: reminders and events, each once per producer's idempotency key, and the bytes to send.

create table reminder (
  reminder_id text collate "C" primary key,
  delivery_id text collate "C" not null,
  idempotency_key text collate "C" not null unique,
  content_sha256 bytea not null,
  endpoint_id text collate "C" not null,
  contract_ref text not null,
  type text not null,
  renewal_date date not null,
  notice_period text not null,
  jurisdiction text not null,
  -- As given: undefined means the one zone that the jurisdiction has.
  time_zone_given text,
  time_zone text not null,
  deadline_period text,
  deadline_given_at timestamptz,
  due_at timestamptz not null,
  deadline_at timestamptz not null,
  late_start boolean not null,
  due_proof jsonb not null,
  revision int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint reminder_contract_ref check (length(contract_ref) between 1 and 200)
);

create index reminder_contract on reminder (contract_ref, reminder_id);

create table event (
  event_id text collate "C" primary key,
  idempotency_key text collate "C" not null unique,
  content_sha256 bytea not null,
  type text not null,
  contract_ref text,
  -- One per endpoint that matched when it was accepted, with those that were skipped: the answer to repeat.
  answer jsonb not null,
  created_at timestamptz not null default now(),
  constraint event_contract_ref check (length(contract_ref) between 1 and 200)
);

create index event_contract on event (contract_ref, event_id) where contract_ref is not null;

-- Payload bytes live apart from what moves: a delivery changes state three times, its body never.
create table body (
  source_id text collate "C" primary key,
  bytes bytea,
  sha256 bytea not null,
  -- Where the producer's payload begins within the bytes.
  data_offset int not null,
  erased_at timestamptz,
  constraint body_present check ((bytes is null) = (erased_at is not null))
);
