-- How far wake-ups were published, and notices that wait for the broker.

-- One row: every delivery at or before this position had a wake-up published for it.
create table watermark (
  one boolean primary key default true,
  due_at timestamptz not null,
  delivery_id text collate "C" not null,
  moved_at timestamptz not null,
  constraint watermark_one check (one)
);

insert into watermark (due_at, delivery_id, moved_at)
values (now(), '', now());

-- Written in the transaction that makes the fact, deleted when the broker has confirmed it: at least once.
create table notice (
  notice_id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  name text not null,
  body jsonb not null
);
