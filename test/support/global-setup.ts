const needed = ['DUEPOST_DATABASE_URL', 'DUEPOST_AMQP_URL'];

/** Tests run against real servers; without their addresses nothing else can be said. */
export default function refuseWithoutServers(): void {
  const missing = needed.filter((name) => (process.env[name] ?? '') === '');
  if (missing.length === 0) return;
  const refusal = new Error(`${missing.join(' and ')} not set: run npm test, which starts the servers`);
  // Where it was thrown explains nothing: vitest is to print the line alone.
  refusal.stack = '';
  throw refusal;
}
