-- Attempts that ended before anything was sent, for a reason of our own: they take nothing from what the retry policy gives.

-- In the current cycle. Decisions about what follows count without them, evidence counts every attempt.
alter table delivery
  add column unsent_attempts int not null default 0,
  add constraint delivery_unsent_attempts check (unsent_attempts >= 0);
