import { BrokerRefusal } from '../../broker/connection.ts';
import { type BrokerFacts, inspectBroker } from '../../broker/inspect.ts';
import { checkTopology } from '../../broker/topology-check.ts';
import type { Config } from '../../runtime/config.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { type Finding, ok, skipped, wrong } from './finding.ts';

/** At-least-once dead-lettering of quorum queues. */
const OLDEST_VERSION: readonly [number, number] = [3, 10];
/** How many differences are named. */
const SHOWN = 3;
const DEPENDENT = ['broker version', 'broker rights', 'topology'];

/** Everything about the broker. */
export async function checkBroker(config: Config): Promise<Finding[]> {
  let facts: BrokerFacts;
  try {
    facts = await inspectBroker(config.broker);
  } catch (error) {
    const mend =
      error instanceof BrokerRefusal
        ? 'set DUEPOST_AMQP_URL to a user and virtual host that are there (rabbitmqctl add_user, add_vhost, set_permissions)'
        : 'start RabbitMQ, or set DUEPOST_AMQP_URL to where it is';
    return [wrong('broker', reasonOf(error), mend), ...DEPENDENT.map((check) => skipped(check, 'no broker'))];
  }
  return [ok('broker', 'reachable'), checkVersion(facts), checkRights(facts, config), await compare(config)];
}

function checkVersion({ product, version }: BrokerFacts): Finding {
  const check = 'broker version';
  const detail = `${product} ${version}`;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_VERSION;
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)
    ? ok(check, detail)
    : wrong(check, `${detail} is too old`, 'use RabbitMQ 3.10 or newer');
}

function checkRights({ refusedWrite }: BrokerFacts, { broker }: Config): Finding {
  const check = 'broker rights';
  return refusedWrite === undefined
    ? ok(check, 'wake-ups may be published')
    : wrong(
        check,
        refusedWrite,
        `rabbitmqctl set_permissions: write to the exchanges and read from the queues that begin with ${broker.prefix}`,
      );
}

async function compare(config: Config): Promise<Finding> {
  const check = 'topology';
  try {
    const differing = await checkTopology(config.broker);
    if (differing.length === 0) return ok(check, 'as it should be');
    const mend = differing.every((text) => text.endsWith('missing'))
      ? 'run duepost topology apply'
      : 'run duepost topology apply; arguments of a queue cannot be changed: drain it, delete it, apply again';
    const more = differing.length - SHOWN;
    const shown = differing.slice(0, SHOWN).join('; ');
    return wrong(check, more > 0 ? `${shown}; and ${more} more (duepost topology check)` : shown, mend);
  } catch (error) {
    return wrong(check, reasonOf(error), 'check DUEPOST_MANAGEMENT_URL and its user, or unset it');
  }
}
