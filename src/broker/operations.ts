import type { Channel, ChannelModel } from 'amqplib';

/** A request the broker refused, in its own words. */
export interface Refused {
  /** 403 no permission, 404 not there, 406 it is there and differs. */
  readonly code: number;
  readonly text: string;
}

/** Runs single requests; a refused one costs its channel, so the next gets a new one. */
export interface Operations {
  /** The refusal, or undefined when it was carried out; throws when the connection is lost. */
  attempt(operation: (channel: Channel) => Promise<unknown>): Promise<Refused | undefined>;
}

export function createOperations(connection: ChannelModel): Operations {
  let channel: Channel | undefined;

  async function open(): Promise<Channel> {
    const fresh = await connection.createChannel();
    fresh.on('error', () => undefined);
    fresh.on('close', () => {
      if (channel === fresh) channel = undefined;
    });
    return fresh;
  }

  return {
    async attempt(operation) {
      channel ??= await open();
      try {
        await operation(channel);
        return undefined;
      } catch (error) {
        channel = undefined;
        if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'number') throw error;
        return { code: error.code, text: readReply(error.message) };
      }
    },
  };
}

/** The broker's own sentence out of the driver's: `… with message "PRECONDITION_FAILED - inequivalent arg …"`. */
function readReply(message: string): string {
  return /message "[A-Z_]+ - (.*)"$/s.exec(message)?.[1] ?? message;
}
