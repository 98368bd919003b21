// Bounded maps that keep the most recent entries, so that no client can fill the memory.

/** Puts an entry in as the newest; the oldest is forgotten where there are more than `max` then. */
export const setBounded = <K, V>(map: Map<K, V>, max: number, key: K, value: V): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}
