// A fair queue: it serves waiters in turns over principals, and each principal's waiters in order of arrival. So a
// principal with many waiters does not delay one with few. Pure; the caller decides when to serve.

export class FairQueue<A> {
  /** Principals in the order of their turns; only those with a waiter. */
  readonly #lines = new Map<string, Array<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(principal: string, waiter: A): void {
    const line = this.#lines.get(principal)
    if (line === undefined) this.#lines.set(principal, [waiter])
    else line.push(waiter)
    this.#size += 1
  }

  /** Removes a waiter that has given up; does nothing if it was already served. */
  remove(principal: string, waiter: A): void {
    const line = this.#lines.get(principal)
    const at = line?.indexOf(waiter) ?? -1
    if (line === undefined || at < 0) return
    line.splice(at, 1)
    this.#size -= 1
    if (line.length === 0) this.#lines.delete(principal)
  }

  /** Removes the waiter that has its turn; its principal's next turn comes after every other's. */
  next(): A | undefined {
    const [first] = this.#lines
    if (first === undefined) return undefined
    const [principal, line] = first
    this.#lines.delete(principal)
    const waiter = line.shift()
    if (line.length > 0) this.#lines.set(principal, line)
    this.#size -= 1
    return waiter
  }
}
