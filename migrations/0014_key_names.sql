-- A key is revoked by its name, so no two that are in force may share one.

-- Of keys that share a name already, the oldest keeps it.
update api_key k
   set name = k.name || ' ' || k.key_id
 where k.revoked_at is null
   and exists (
     select
       from api_key older
      where older.name = k.name
        and older.revoked_at is null
        and older.key_id < k.key_id);

create unique index api_key_name on api_key (name) where revoked_at is null;
