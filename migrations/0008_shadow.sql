-- Shadow mode: what was computed, claimed and signed, and went nowhere, is told apart from what was sent.

alter table attempt
  add column shadow boolean not null default false;

alter table audit_record
  add column shadow boolean not null default false;
