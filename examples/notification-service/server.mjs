// A notification service: takes renewal reminders and events, writes each down once, answers at once, and sends the
// notice afterwards. Run one or many of it on the same database.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createPostgresStore, nodeHttpReceiver, RECEIPT_TABLE_SQL } from 'duepost/receiver';
import pg from 'pg';

const { DATABASE_URL, WEBHOOK_SECRETS, PORT = '8090', HOST = '127.0.0.1' } = process.env;
if (!DATABASE_URL || !WEBHOOK_SECRETS) throw new Error('set DATABASE_URL and WEBHOOK_SECRETS (several: separated by spaces)');

// The two timeouts free what a crashed or cut-off instance still holds in the database.
const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  idle_in_transaction_session_timeout: 10_000,
  keepAlive: true,
});
pool.on('error', (error) => console.error('database:', error.message));
await pool.query(RECEIPT_TABLE_SQL);
await pool.query(await readFile(new URL('schema.sql', import.meta.url), 'utf8'));

/** The effect: one row, in the transaction that also records the answer. Quick, because the sender is waiting. */
async function writeNotice(call, client) {
  const message = call.json();
  // An event has no contract_ref.
  const { rows } = await client.query(
    'insert into notice (key, type, contract_ref, body) values ($1, $2, $3, $4) returning notice_id',
    [call.key, message.type, message.contract_ref, JSON.stringify(message)],
  );
  // The receipt is kept with the attempt: months later it leads an auditor from the evidence to this row.
  return { status: 202, headers: { 'webhook-receipt': `notice-${rows[0].notice_id}` } };
}

/** The work afterwards: takes notices nobody else is working on. Returns how many it sent. */
async function sendNotices() {
  const { rows } = await pool.query(`
    update notice
       set sent_at = now()
     where notice_id in (
             select notice_id
               from notice
              where sent_at is null
              order by notice_id
              limit 20
                for update skip locked)
    returning notice_id, type, contract_ref`);
  for (const { notice_id, type, contract_ref } of rows) {
    console.log(`notice ${notice_id} (${type}${contract_ref ? ` of ${contract_ref}` : ''}) is on its way`);
  }
  return rows.length;
}

const receive = nodeHttpReceiver({
  secret: WEBHOOK_SECRETS.split(' '),
  store: createPostgresStore(pool),
  handle: writeNotice,
  onError: (error) => console.error('call failed:', error.message),
});

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/hooks/renewals') return void receive(request, response);
  response.writeHead(request.url === '/healthz' ? 200 : 404).end();
});
server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}/hooks/renewals`));

let stopping = false;
const closed = new Promise((resolve) => {
  process.once('SIGTERM', () => {
    stopping = true;
    server.close(resolve);
    server.closeIdleConnections();
  });
});
while (!stopping) {
  const sent = await sendNotices().catch((error) => console.error('sending failed:', error.message));
  if (!sent) await new Promise((resolve) => setTimeout(resolve, 200));
}
await closed;
await pool.end();
