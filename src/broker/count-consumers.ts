import { type BrokerConfig, withConnection } from './connection.ts';

/** How many consumers a queue has; undefined when there is no such queue. */
export function countConsumers(config: BrokerConfig, queue: string): Promise<number | undefined> {
  return withConnection(config, 'count', async (connection) => {
    const channel = await connection.createChannel();
    // A queue that is missing ends the channel.
    channel.on('error', () => undefined);
    try {
      return (await channel.checkQueue(queue)).consumerCount;
    } catch (error) {
      if ((error as { code?: unknown }).code === 404) return undefined;
      throw error;
    }
  });
}
