-- Endpoints: where things go, under which policy, signed with which secrets.

create table endpoint (
  endpoint_id text collate "C" primary key,
  name text not null,
  url text not null,
  status text not null default 'active',
  status_reason text,
  mode text not null default 'live',
  event_types text[] not null default array['*'],
  policy jsonb,
  max_in_flight int,
  headers jsonb not null default '{}',
  tls jsonb,
  -- Moves with every change that a worker must see before its next call; workers cache by it.
  revision int not null default 1,
  consecutive_failures int not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint endpoint_status check (status in ('active', 'paused', 'disabled')),
  constraint endpoint_mode check (mode in ('live', 'shadow')),
  constraint endpoint_max_in_flight check (max_in_flight between 1 and 10000),
  constraint endpoint_deleted_is_disabled check (deleted_at is null or status = 'disabled')
) with (fillfactor = 70);

create unique index endpoint_name on endpoint (name) where deleted_at is null;

-- Secrets are encrypted under the master key; the newest one signs X-Signature-256.
create table endpoint_secret (
  endpoint_id text collate "C" not null references endpoint,
  secret_number int not null,
  ciphertext bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  primary key (endpoint_id, secret_number)
);
