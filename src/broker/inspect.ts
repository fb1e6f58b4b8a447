import { type BrokerConfig, withConnection } from './connection.ts';
import { createOperations } from './operations.ts';
import { namesOf } from './topology.ts';

/** What a broker says about itself, and what it lets this user do. */
export interface BrokerFacts {
  readonly product: string;
  readonly version: string;
  /** Why no wake-up could be published, in the broker's words; undefined: one could. */
  readonly refusedWrite: string | undefined;
}

const NO_PERMISSION = 403;

/** Connects and looks; what it publishes to find out goes nowhere. */
export function inspectBroker(config: BrokerConfig): Promise<BrokerFacts> {
  const { wake } = namesOf(config.prefix);
  return withConnection(config, 'doctor', async (connection) => {
    const { product, version } = connection.connection.serverProperties;
    const refused = await createOperations(connection).attempt((channel) => {
      // A key that no queue is bound with. A refusal ends the channel, and with it the question that follows.
      channel.publish(wake, 'doctor', Buffer.alloc(0));
      return channel.checkExchange(wake);
    });
    return {
      product: String(product),
      version: String(version),
      refusedWrite: refused?.code === NO_PERMISSION ? refused.text : undefined,
    };
  });
}
