-- Who may call, and what operators did to things that are not deliveries.

create table api_key (
  key_id text collate "C" primary key,
  name text not null,
  -- SHA-256 of the key's 32 random bytes of entropy: nothing to guess, so no slow hash is needed.
  key_sha256 bytea not null unique,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint api_key_scopes check (
    scopes <@ array['publish', 'read', 'operate', 'admin'] and cardinality(scopes) > 0)
);

-- Append-only: every change to endpoints and keys, with who and why.
create table operation (
  operation_id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  subject_id text collate "C" not null,
  event text not null,
  actor text not null,
  detail jsonb not null
);

create index operation_subject on operation (subject_id, operation_id);

create trigger operation_append_only
before update or delete on operation
for each row
execute function refuse_change();
