-- What a delivery leaves behind: a notice to send. Nothing here is unique per key; that it is written once is the kit's
-- work.
create table if not exists notice (
  notice_id    bigint generated always as identity primary key,
  key          text not null,
  type         text not null,
  contract_ref text,
  body         jsonb not null,
  received_at  timestamptz not null default now(),
  sent_at      timestamptz
);
create index if not exists notice_unsent on notice (notice_id) where sent_at is null;
