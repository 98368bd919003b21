// A look at an origin, over HTTP: what it answers of the entries that it does not list.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { testnetUsdc } from "../../support/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { type Origin, startOrigin } from "./startOrigin.ts"
import type { Json } from "./support.ts"

const start = (database: (typeof databaseKinds)[number], ...set: ReadonlyArray<string>) =>
  startFacilitator({
    database,
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0", ...set]
  })

const option = (payTo: string, amount = "1000") => ({
  scheme: "exact",
  network: "ledger:testnet",
  asset: testnetUsdc,
  amount,
  payTo,
  maxTimeoutSeconds: 60
})

const serve = (origin: Origin, path: string, body: unknown) => origin.answers.set(path, { status: 200, body })

const look = (facilitator: Facilitator, { url }: Origin) =>
  Effect.map(
    facilitator.ask(`/catalog/v1/look?origin=${encodeURIComponent(url)}`, { method: "POST" }),
    ({ json }) => json as Json
  )

describe.each(databaseKinds)("a look on %s", (database) => {
  it.live(
    "names entries of other origins and those without a URL, once each and bounded",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database)
          const [origin, many] = [yield* startOrigin, yield* startOrigin]
          const payTo = (yield* facilitator.account()).publicKey()
          const accepts = [option(payTo)]
          const elsewhere = "https://elsewhere.example.com/x"
          serve(origin, "/.well-known/x402", { resources: [{ resource: "/own", accepts }, elsewhere, { accepts: [] }] })
          serve(origin, "/.well-known/x402.json", { items: [{ resource: elsewhere, accepts }] })
          serve(origin, "/openapi.json", {
            servers: [{ url: "https://api.example.com/v1" }],
            paths: { "/paid": { get: { "x-payment-info": {} }, post: { "x-payment-info": {} } } }
          })
          expect(yield* look(facilitator, origin)).toMatchObject({
            named: 1,
            listed: 1,
            unlisted: [
              { resource: elsewhere, reason: "other_origin" },
              { resource: '{"accepts":[]}', reason: "unreadable_url" },
              { resource: "https://api.example.com/v1/paid", reason: "other_origin" }
            ]
          })
          serve(many, "/.well-known/x402", {
            resources: Array.from({ length: 150 }, (_, index) => `https://elsewhere.example.com/${index}`)
          })
          const { listed, named, unlisted } = yield* look(facilitator, many)
          expect([named, listed, unlisted.length]).toEqual([0, 0, 100])
        })
      ),
    240_000
  )
})
