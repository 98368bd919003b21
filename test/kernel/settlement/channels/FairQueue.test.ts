// Turns over principals: a principal with many waiters does not delay others, and a departure loses no other waiter.
import { expect, it } from "vitest"
import { FairQueue } from "../../../../kernel/settlement/channels/FairQueue.ts"

const queueOf = (...waiters: ReadonlyArray<string>) => {
  const queue = new FairQueue<string>()
  for (const waiter of waiters) queue.add(waiter[0]!, waiter)
  return queue
}

const served = (queue: FairQueue<string>): ReadonlyArray<string> => {
  const all: Array<string> = []
  for (let size = queue.size; size > 0; size--) {
    expect(queue.size).toBe(size)
    all.push(queue.next()!)
  }
  expect([queue.size, queue.next()]).toEqual([0, undefined])
  return all
}

it("serves principals in turns, and each one's waiters in order", () => {
  expect(served(queueOf("a1", "a2", "a3", "b1", "c1", "b2"))).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"])
})

it("a waiter that gives up loses its own place alone", () => {
  const queue = queueOf("a1", "a2", "a3", "b1")
  queue.remove("a", "a2")
  queue.remove("b", "b1")
  // Served before, never there, and of another principal.
  for (const waiter of ["b1", "a9", "c1"]) queue.remove(waiter[0]!, waiter)
  queue.remove("b", "a1")
  queue.add("b", "b2")
  expect(served(queue)).toEqual(["a1", "b2", "a3"])
})
