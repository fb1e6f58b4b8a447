-- What waits to be sealed is looked up by subject: by the check of the store, and by retention, which drops it with the rest.
create index unsealed_subject on unsealed (subject_id);
