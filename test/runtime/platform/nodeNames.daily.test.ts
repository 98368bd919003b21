// Names with a server that never answers, from a real socket: they delay neither other names nor the thread pool.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createSocket } from "node:dgram"
import { lookup } from "node:dns/promises"
import { once } from "node:events"
import { makeResolve, readHosts } from "../../../runtime/platform/nodeNames.ts"

/** A name server that only answers names below `good.example`. */
const nameServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const socket = createSocket("udp4")
    const asked: Array<string> = []
    socket.on("message", (message, peer) => {
      const text = message.toString("latin1")
      asked.push(text)
      if (!text.includes("good")) return
      const end = message.indexOf(0, 12) + 5
      const head = Buffer.from(message.subarray(0, 12))
      head.set([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], 2)
      const isV4 = message[end - 3] === 1
      if (!isV4) head[7] = 0
      const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 9])
      const whole = Buffer.concat([head, message.subarray(12, end), isV4 ? answer : Buffer.alloc(0)])
      socket.send(whole, peer.port, peer.address)
    })
    socket.bind(0, "127.0.0.1")
    await once(socket, "listening")
    return { asked, close: () => socket.close(), at: `127.0.0.1:${socket.address().port}` }
  }),
  ({ close }) => Effect.sync(close)
)

it.live("resolves a good name while a hundred silent ones wait", () =>
  Effect.gen(function* () {
    const { asked, at } = yield* nameServer
    const resolve = makeResolve([at])
    const silent = []
    for (let n = 0; n < 100; n++) silent.push(yield* Effect.forkChild(Effect.exit(resolve(`n${n}.silent.example`))))
    while (asked.length < 8) yield* Effect.sleep("5 millis")
    // Another zone has its own queue; the silent names of one zone are asked four at a time.
    expect(yield* resolve("a.good.test-zone")).toEqual(["203.0.113.9"])
    yield* Effect.promise(() => lookup("localhost"))
    expect(silent.every((fiber) => fiber.pollUnsafe() === undefined)).toBe(true)
    expect(new Set(asked.map((text) => /n\d+/.exec(text)?.[0]).filter(Boolean)).size).toBeLessThanOrEqual(4)
    const ends = yield* Effect.forEach(silent, Fiber.join)
    expect(ends.every(({ _tag }) => _tag === "Failure")).toBe(true)
  })
)

it("reads the hosts file by whole names", () => {
  const hosts = "127.0.0.1 localhost # local\n::1\tlocalhost ip6\n10.0.0.9 Receiver receiver.lan\n#1.1.1.1 x\n"
  expect(readHosts(hosts, "localhost")).toEqual(["127.0.0.1", "::1"])
  expect(readHosts(hosts, "receiver")).toEqual(["10.0.0.9"])
  expect(readHosts(hosts, "x")).toEqual([])
})
