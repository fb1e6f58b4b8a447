-- Every batch of events that name no endpoint asks who wants them. Measured with 50,000 endpoints, of which 250 do: 17 ms
-- without, 0.7 ms with it.
create index endpoint_event_types on endpoint using gin (event_types) where deleted_at is null;
