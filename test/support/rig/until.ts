// Waits for a condition of running programs, by the machine's clock, as Effect's tests do with `eventually`.

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * Polls until the condition holds; a failed poll counts as not yet. After `millis` it throws with the result of `tail`.
 */
export const until = async (
  what: string,
  holds: () => Promise<boolean>,
  millis: number,
  tail = () => ""
): Promise<void> => {
  const end = performance.now() + millis
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`${what}: not within ${millis / 1_000} s\n${tail()}`)
    await pause(100)
  }
}

/** True if a facilitator reports that it is ready. */
export const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false
  )
