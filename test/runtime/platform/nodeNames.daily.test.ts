// Names with a server that never answers, from a real socket: they delay neither other names nor the thread pool.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { lookup } from "node:dns/promises"
import { OnBehalfOf } from "../../../kernel/platform/Outbound.ts"
import { makeNames, readHosts } from "../../../runtime/platform/nodeNames.ts"
import { namesAsked, startNameServer } from "../../support/nameServer.ts"

it.live.each([
  ["of one zone", "", (n: number) => `n${n}.silent.example`],
  ["of one caller", "ip:203.0.113.7", (n: number) => `n${n}.silent${n}.example`]
] as const)("resolves a good name while a hundred silent ones %s wait", ([, caller, nameOf]) =>
  Effect.gen(function* () {
    const { asked, at } = yield* startNameServer()
    const { resolve } = makeNames([at])
    const silent = []
    for (let n = 0; n < 200; n++) {
      const asking = Effect.provideService(Effect.exit(resolve(nameOf(n))), OnBehalfOf, caller)
      silent.push(yield* Effect.forkChild(asking))
    }
    while (namesAsked(asked, /n\d+/) < 8) yield* Effect.sleep("5 millis")
    expect(yield* Effect.provideService(resolve("a.good.test-zone"), OnBehalfOf, "ip:203.0.113.8")).toEqual([
      "203.0.113.9"
    ])
    expect(yield* resolve("b.good.test-zone")).toEqual(["203.0.113.9"])
    yield* Effect.promise(() => lookup("localhost"))
    expect(silent.every((fiber) => fiber.pollUnsafe() === undefined)).toBe(true)
    expect(namesAsked(asked, /n\d+/)).toBe(8)
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
