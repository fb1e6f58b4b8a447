-- Attempts that people asked for: they come on top of what the retry policy gives.

-- In the current cycle. Decisions about what follows count without them, evidence counts every attempt.
alter table delivery
  add column manual_attempts int not null default 0,
  add constraint delivery_manual_attempts check (manual_attempts >= 0);
