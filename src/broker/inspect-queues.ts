import type { Channel, ChannelModel } from 'amqplib';
import { waitBriefly } from './connection.ts';

/** What the broker says of a queue. */
export interface QueueState {
  /** Messages that wait for a consumer. */
  readonly ready: number;
  readonly consumers: number;
}

/** Asks for several queues, one after the other; a queue that is missing is missing in the answer. */
export async function inspectQueues(
  connection: ChannelModel,
  queues: readonly string[],
): Promise<Map<string, QueueState>> {
  const found = new Map<string, QueueState>();
  let channel: Channel | undefined;
  try {
    for (const queue of queues) {
      channel ??= await openChannel(connection);
      try {
        const { messageCount, consumerCount } = await channel.checkQueue(queue);
        found.set(queue, { ready: messageCount, consumers: consumerCount });
      } catch (error) {
        // Asking for a queue that is missing ends the channel.
        channel = undefined;
        if ((error as { code?: unknown }).code !== 404) throw error;
      }
    }
  } finally {
    // With a connection that dies meanwhile, the driver never says that the channel is closed.
    if (channel !== undefined) await waitBriefly([channel.close()]);
  }
  return found;
}

async function openChannel(connection: ChannelModel): Promise<Channel> {
  const channel = await connection.createChannel();
  channel.on('error', () => undefined);
  return channel;
}
