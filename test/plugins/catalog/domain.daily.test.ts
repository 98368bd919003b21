// Recipients that an origin's domain names in DNS: they settle who owns its provisional listings, and nothing else.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { namesAsked, startNameServer } from "../../support/nameServer.ts"
import { catalogWorld } from "./catalogWorld.ts"
import { serve, startOrigin } from "./startOrigin.ts"
import { bodyDeclaration, declaring, type Json, verified } from "./support.ts"

const record = (account: string) => `v=tk1; payto=${account}`

const startWorld = Effect.fnUntraced(function* (database: (typeof databaseKinds)[number]) {
  const zones = new Map<string, ReadonlyArray<string> | undefined>()
  const { asked, at } = yield* startNameServer("127.0.0.1", (name) => zones.get(name))
  const facilitator = yield* startFacilitator({
    database,
    nameServers: [at],
    closeMillis: 1_000,
    set: [
      "plugins=[ledger-local, x402-exact, catalog]",
      'server.trusted_proxies=["127.0.0.1"]',
      // The origin below, which is on this machine.
      "catalog_security.allow_local_origins=true",
      "catalog_security.probe_pause_seconds=0"
    ]
  })
  const world = yield* catalogWorld(Effect.succeed(facilitator))
  const origin = yield* startOrigin
  const { port } = new URL(origin.url)
  /** Declares a path of the host, which only POST serves, for a recipient. */
  const declare = (host: string, payTo: string) =>
    Effect.andThen(
      declaring(facilitator, {
        payer: world.payer,
        payTo,
        url: `http://${host}:${port}/report`,
        extension: bodyDeclaration()
      }),
      (body) => verified(facilitator, body)
    )
  const look = (host: string) =>
    Effect.map(
      facilitator.ask(`/catalog/v1/look?origin=${encodeURIComponent(`http://${host}:${port}`)}`, { method: "POST" }),
      ({ json }) => json as Json
    )
  const listing = (host: string) =>
    Effect.map(
      facilitator.sql<Json>`select ownership, state, pay_tos, grade, standing_at, asked_at
        from catalog_resources r left join catalog_probes p on p.resource_id = r.id
        where origin = ${`http://${host}:${port}`}`,
      ([row]) => row as Json
    )
  return { ...world, asked, declare, listing, look, origin, zones }
})

describe.each(databaseKinds)("a domain's records on %s", (database) => {
  it.live(
    "prove only the recipients that they name",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator, listing, look, origin, payTo, zones } = yield* startWorld(database)
          const other = (yield* facilitator.account()).publicKey()
          const foreign = (yield* facilitator.account()).publicKey()
          const nothing = { ownership: "provisional", state: "active", pay_tos: [payTo] }
          const proven = { ownership: "proven", state: "active", pay_tos: [payTo] }
          const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, object]> = [
            ["one", ["v=spf1 -all", record(payTo)], "dns 1 recipients", proven],
            ["two", [record(payTo), record(other)], "dns 2 recipients", { ...proven, pay_tos: [payTo, other] }],
            ["foreign", [record(foreign)], "dns 1 recipients", nothing],
            ["form", [`v=tk1; payto=${payTo}; more`, `payto=${payTo}`, `x ${record(payTo)}`], "dns 0", nothing],
            ["many", [record(payTo), ...Array<string>(16).fill("x")], "dns too many", nothing],
            ["long", [record(payTo), "x".repeat(256)], "dns record too long", nothing],
            ["empty", [], "dns unresolved", nothing]
          ]
          for (const [name, records, detail, expected] of cases) {
            const host = `${name}.good.dev`
            zones.set(`_tollkeeper.${host}`, records)
            // Records of the host itself, and of its parent, are not asked for.
            zones.set(host, [record(foreign)])
            yield* declare(host, payTo)
            expect((yield* look(host))["asked"], name).toContain(detail)
            expect(yield* listing(host), name).toMatchObject({ grade: "claimed", standing_at: null, ...expected })
          }
          // A claimant that the domain names displaces the first recipient, unless the origin itself names that one.
          // Before a probe has asked the origin itself, no claimant displaces the owner.
          for (const [host, document, isProbed, expectedOwner] of [
            ["unprobed.good.dev", undefined, false, nothing],
            ["claimed.good.dev", undefined, true, { ...proven, pay_tos: [other] }],
            ["documented.good.dev", { payTo }, true, proven]
          ] as const) {
            origin.answers.delete("/.well-known/x402")
            if (document !== undefined) serve(origin, "/.well-known/x402", document)
            zones.set(`_tollkeeper.${host}`, [record(other)])
            yield* declare(host, payTo)
            yield* declare(host, other)
            yield* eventually(listing(host), (row) => row["asked_at"] !== null)
            if (!isProbed)
              yield* facilitator.sql`update catalog_probes set asked_at = null, leased_until = null, fence = fence + 1,
                due_at = now() + interval '1 day'`
            yield* look(host)
            expect(yield* listing(host), host).toMatchObject(expectedOwner)
          }
        })
      ),
    240_000
  )

  it.live(
    "leave everything unchanged while their server is silent",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { asked, declare, facilitator, listing, look, payTo, payer } = yield* startWorld(database)
          const host = "silent.good.dev"
          yield* declare(host, payTo)
          // Without a request for a look, nothing asks for the records.
          const { asked_at: _, ...before } = yield* eventually(listing(host), (row) => row["asked_at"] !== null)
          expect(namesAsked(asked, /_tollkeeper/)).toBe(0)
          const pending = yield* Effect.forkChild(look(host))
          yield* eventually(
            Effect.sync(() => namesAsked(asked, /_tollkeeper/)),
            (count) => count === 1
          )
          const { body } = yield* facilitator.payment({ payer, payTo, amount: 1_000n })
          expect((yield* facilitator.settle(body)).json.success).toBe(true)
          expect(pending.pollUnsafe()).toBeUndefined()
          expect((yield* Fiber.join(pending))["asked"]).toContain("dns unresolved")
          expect(yield* listing(host)).toMatchObject(before)
        })
      ),
    240_000
  )
})
