-- Bounds of time-ordered ids: where the ids of an instant begin, so that tables can be partitioned by id and still by month.

-- The first 10 characters of an id's suffix are its 48-bit millisecond timestamp in Crockford base32 (2 + 48 bits),
-- so the prefix alone sorts at or before every id made at that instant.
create function id_lower_bound(prefix text, at timestamptz)
returns text
language sql
stable
strict
as $$
  select prefix || '_' || string_agg(
           substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((ms >> (45 - 5 * i)) & 31)::int, 1), '' order by i)
    from (select floor(extract(epoch from at) * 1000)::bigint as ms) as instant,
         generate_series(0, 9) as i
$$;
