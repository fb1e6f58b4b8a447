// Arrays in PostgreSQL's binary form. As text, the driver escapes every quote of every element and the server reads them
// back character by character: eight times the work for a column of JSON text.

const HEADER_BYTES = 20;
const NULL = -1;
/** Microseconds between the Unix epoch and PostgreSQL's, which is the start of 2000. */
const EPOCH_MICROSECONDS = 946_684_800_000_000n;

interface Kind<T> {
  /** PostgreSQL's number of the element's type. */
  readonly oid: number;
  readonly sizeOf: (value: T) => number;
  readonly write: (into: Buffer, value: T, at: number) => unknown;
}

type Column<T> = readonly (T | undefined)[];

export const textArray = arrayOf<string>({
  oid: 25,
  sizeOf: (value) => Buffer.byteLength(value),
  write: (into, value, at) => into.write(value, at),
});

export const intArray = arrayOf<number>({
  oid: 23,
  sizeOf: () => 4,
  write: (into, value, at) => into.writeInt32BE(value, at),
});

export const floatArray = arrayOf<number>({
  oid: 701,
  sizeOf: () => 8,
  write: (into, value, at) => into.writeDoubleBE(value, at),
});

export const boolArray = arrayOf<boolean>({
  oid: 16,
  sizeOf: () => 1,
  write: (into, value, at) => into.writeUInt8(value ? 1 : 0, at),
});

export const instantArray = arrayOf<Date>({
  oid: 1184,
  sizeOf: () => 8,
  write: (into, value, at) => into.writeBigInt64BE(BigInt(value.getTime()) * 1000n - EPOCH_MICROSECONDS, at),
});

export const bytesArray = arrayOf<Buffer>({
  oid: 17,
  sizeOf: (value) => value.length,
  write: (into, value, at) => value.copy(into, at),
});

/** An array parameter: the driver sends a buffer as binary; undefined becomes null. */
function arrayOf<T>({ oid, sizeOf, write }: Kind<T>): (values: Column<T>) => Buffer {
  return (values) => {
    const sizes = values.map((value) => (value === undefined ? NULL : sizeOf(value)));
    const total = sizes.reduce((sum, size) => sum + 4 + Math.max(0, size), HEADER_BYTES);
    const buffer = Buffer.allocUnsafe(total);
    buffer.writeInt32BE(1, 0); // dimensions
    buffer.writeInt32BE(sizes.includes(NULL) ? 1 : 0, 4);
    buffer.writeInt32BE(oid, 8);
    buffer.writeInt32BE(values.length, 12);
    buffer.writeInt32BE(1, 16); // index of the first
    let at = HEADER_BYTES;
    for (let index = 0; index < values.length; index += 1) {
      const size = sizes[index] as number;
      at = buffer.writeInt32BE(size, at);
      if (size === NULL) continue;
      write(buffer, values[index] as T, at);
      at += size;
    }
    return buffer;
  };
}
