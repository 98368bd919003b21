// Names with a DNS server that never answers, in probes without a key: they delay neither a payment nor another
// caller's probe.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { lookup } from "node:dns/promises"
import { startFacilitator } from "../../support/facilitator.ts"
import { namesAsked, startNameServer } from "../../support/nameServer.ts"
import { option, serve, startOrigin } from "./startOrigin.ts"

it.live(
  "ten looks at silent names delay no payment and no other look",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { asked, at } = yield* startNameServer("127.0.0.1")
        const { account, ask, payment, settle, verify } = yield* startFacilitator({
          nameServers: [at],
          set: [
            "plugins=[ledger-local, x402-exact, catalog]",
            'server.trusted_proxies=["127.0.0.1"]',
            // Origins below, which are on this machine.
            "catalog_security.allow_local_origins=true"
          ]
        })
        const look = (url: string, address: string) =>
          ask(`/catalog/v1/look?origin=${encodeURIComponent(url)}`, {
            method: "POST",
            headers: { "x-forwarded-for": address }
          })
        const payTo = (yield* account()).publicKey()
        const payer = yield* account()
        const { body } = yield* payment({ payer, payTo, amount: 1_000n })
        const origin = yield* startOrigin
        serve(origin, "/.well-known/x402", { resources: [{ resource: "/own", accepts: [option(payTo)] }] })

        const silent = []
        for (let n = 0; n < 10; n++)
          silent.push(yield* Effect.forkChild(look(`https://n${n}.silent${n}.dev`, "203.0.113.7")))
        while (namesAsked(asked, /n\d/) < 8) yield* Effect.sleep("5 millis")
        const other = look(`http://shop.good.dev:${new URL(origin.url).port}`, "203.0.113.8")
        const [verified, , probed] = yield* Effect.all(
          [verify(body), verify(body), other, Effect.promise(() => lookup("localhost"))],
          { concurrency: "unbounded" }
        )
        const settled = yield* settle(body)
        expect([verified.status, verified.json.isValid]).toEqual([200, true])
        expect([settled.status, settled.json.success]).toEqual([200, true])
        expect(probed.json).toMatchObject({ named: 1, listed: 1 })
        expect(silent.every((fiber) => fiber.pollUnsafe() === undefined)).toBe(true)
        for (const one of silent) expect((yield* Fiber.join(one)).json.asked).toContain("unresolved")
      })
    ),
  240_000
)
