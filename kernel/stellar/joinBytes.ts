// Joins byte arrays.
export const joinBytes = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** The same of a few parts. */
export const joinedBytes = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => joinBytes(parts)
