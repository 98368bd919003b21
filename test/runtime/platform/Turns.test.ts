import { expect, it } from "@effect/vitest"
import { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import { Turns } from "../../../runtime/platform/Turns.ts"

const responding = () => Object.assign(new EventEmitter(), { destroyed: false }) as unknown as ServerResponse
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

const compute = (millis: number) => {
  const until = performance.now() + millis
  while (performance.now() < until);
}

/** A hundred requests of some milliseconds, and how many of them have begun. */
const flood = (turns: Turns, millis = 5) => {
  const begun = { count: 0 }
  for (let at = 0; at < 100; at++) {
    const response = responding()
    turns.enter(`ip:${at % 3}`, response, () => {
      begun.count += 1
      compute(millis)
      setImmediate(() => response.emit("close"))
    })
  }
  return begun
}

it("begins a payment immediately, whatever waits", () => {
  const turns = new Turns()
  flood(turns)
  let isBegun = false
  turns.pay(responding(), () => (isBegun = true))
  expect(isBegun).toBe(true)
})

it("gives others a third of the time while a payment is answered", async () => {
  const turns = new Turns()
  const payment = responding()
  turns.pay(payment, () => undefined)
  const began = performance.now()
  const begun = flood(turns)
  expect(begun.count).toBe(1)
  while (begun.count < 10) await nextTurn()
  // Nine pauses of 10 ms, of which a timer may cut one, and ten times 5 ms of work.
  expect(performance.now() - began).toBeGreaterThan(120)
  payment.emit("close")
  while (begun.count < 100) await nextTurn()
})

it("adds up the turns of cheap requests while a payment is answered", async () => {
  const turns = new Turns()
  const payment = responding()
  turns.pay(payment, () => undefined)
  const began = performance.now()
  const begun = flood(turns, 0.4)
  while (begun.count < 100) await nextTurn()
  // A hundred times .4 ms of work, and twice as long of pauses, of which a timer may cut up to half.
  expect(performance.now() - began).toBeGreaterThan(75)
  payment.emit("close")
})

it("begins one a turn, few in all, of each address in turn", async () => {
  const turns = new Turns()
  const begun: Array<string> = []
  const answered: Array<ServerResponse> = []
  const enter = (address: string) => {
    const response = responding()
    turns.enter(address, response, () => {
      begun.push(address)
      answered.push(response)
    })
  }
  for (let at = 0; at < 100; at++) enter("hostile")
  for (let at = 0; at < 3; at++) enter("honest")
  expect(begun.length).toBe(1)
  while (begun.length < 16) await nextTurn()
  await nextTurn()
  expect(begun.length).toBe(16)
  expect(begun.slice(0, 8).filter((address) => address === "honest").length).toBe(3)
  for (const response of answered.splice(0)) response.emit("close")
  while (begun.length < 32) await nextTurn()
})

it("drops a request whose client has gone", () => {
  const turns = new Turns()
  const gone = Object.assign(responding(), { destroyed: true }) as unknown as ServerResponse
  let isBegun = false
  turns.enter("a", gone, () => (isBegun = true))
  expect(isBegun).toBe(false)
})
