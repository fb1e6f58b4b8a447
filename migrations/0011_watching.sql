-- What watching needs: deliveries that may miss their deadline, and the trace that a delivery belongs to.

-- Few rows, and only while they live.
create index delivery_at_risk on delivery (deadline_at, delivery_id)
 where at_risk_at is not null
   and due_at is not null;

-- W3C trace context of what asked for the delivery; written only where traces are made.
alter table delivery add column trace_parent text;
