/** Remembers the newest `maxEntries` results by key, so that a stream of odd keys cannot fill the memory. */
export function createBoundedCache<Value>(maxEntries: number): (key: string, compute: () => Value) => Value {
  const entries = new Map<string, Value>();
  return (key, compute) => {
    const known = entries.get(key);
    if (known !== undefined) return known;
    const value = compute();
    if (entries.size >= maxEntries) {
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        break;
      }
    }
    entries.set(key, value);
    return value;
  };
}
