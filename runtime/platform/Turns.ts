// Schedules requests in the event loop. Payments begin immediately. Other requests begin round-robin by address, one in
// each turn of the loop, so that a new payment waits for one of them at most. While a payment is being answered, they
// get at most a third of the event loop's time, so that unexpectedly expensive requests do not delay payments.
import type { ServerResponse } from "node:http"

/**
 * Maximum requests in progress, except payments. A slow request stops counting after `soonMillis`, since it probably
 * waits for something.
 */
const begunMax = 16
const soonMillis = 250

/** Time of others' turns: a third. Turns below a millisecond add up, since a flood consists of them. */
const restTimes = 2

/** Longest pause after a costly turn. */
const pauseMax = 250

type Begin = () => void

export class Turns {
  #payments = 0
  #begun = 0
  #isPausing = false
  /** Milliseconds that others still have to pause. */
  #owed = 0
  /** Queued requests by address; the first address is next. */
  readonly #waiting = new Map<string, Array<Begin>>()

  pay(response: ServerResponse, begin: Begin): void {
    this.#payments += 1
    response.once("close", () => {
      this.#payments -= 1
    })
    begin()
  }

  enter(address: string, response: ServerResponse, begin: Begin): void {
    const queue = this.#waiting.get(address) ?? []
    if (queue.length === 0) this.#waiting.set(address, queue)
    queue.push(() => {
      if (response.destroyed) return
      this.#count(response)
      begin()
    })
    this.#next()
  }

  #count(response: ServerResponse): void {
    this.#begun += 1
    let isCounted = true
    const leave = () => {
      if (!isCounted) return
      isCounted = false
      clearTimeout(late)
      this.#begun -= 1
      this.#next()
    }
    const late = setTimeout(leave, soonMillis)
    response.once("close", leave)
  }

  #next(): void {
    while (!this.#isPausing && this.#begun < begunMax) {
      const [first] = this.#waiting
      if (first === undefined) return
      const [address, queue] = first
      this.#waiting.delete(address)
      const begin = queue.shift()!
      if (queue.length > 0) this.#waiting.set(address, queue)
      this.#pause()
      begin()
    }
  }

  /** Starts no other request in this turn and, while a payment is answered, for twice as long as the turns took. */
  #pause(): void {
    this.#isPausing = true
    const begun = performance.now()
    const resume = () => {
      this.#isPausing = false
      this.#next()
    }
    setImmediate(() => {
      this.#owed = this.#payments === 0 ? 0 : this.#owed + restTimes * (performance.now() - begun)
      if (this.#owed < 1) return resume()
      setTimeout(resume, Math.min(this.#owed, pauseMax))
      this.#owed = 0
    })
  }
}
