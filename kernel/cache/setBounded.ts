// Bounded maps that keep the most recent entries, so that no client can fill the memory.

/** Sets an entry as the newest; beyond `max` entries the oldest is evicted. */
export const setBounded = <K, V>(map: Map<K, V>, max: number, key: K, value: V): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}
