// Two facilitators over one PostgreSQL: listings, counts, probes and cursors of one hold for the other.
import { Keypair } from "@stellar/stellar-sdk"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { startOrigin } from "./startOrigin.ts"
import { eventually } from "../../support/eventually.ts"
import {
  bindRecipients,
  browse,
  declaring,
  explain,
  type Json,
  outcomes,
  queryDeclaration,
  resolve,
  sellerKey,
  verified,
  withKey
} from "./support.ts"

const url = "https://shop.example.com/item"
const quiet = "catalog_security.probe_origins=false"

const startTwo = (
  set: ReadonlyArray<string>
): Effect.Effect<readonly [Facilitator, Facilitator], unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const source = yield* Layer.build(sourceLayer("postgres"))
    const opened = yield* Context.get(source, DatabaseSource).open
    const shared = {
      database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
      environment: { SPONSOR_SECRET: Keypair.random().secret(), FACILITATOR_API_KEYS: sellerKey },
      closeMillis: 1_000
    }
    const first = yield* startFacilitator({ ...shared, set: ["plugins=[ledger-local, x402-exact, catalog]", ...set] })
    const second = yield* startFacilitator({
      ...shared,
      ledgerUrl: first.ledgerUrl,
      set: ["plugins=[x402-exact, catalog]", ...set]
    })
    return [withKey(first), withKey(second)] as const
  })

interface Activity {
  readonly settled: bigint
  readonly payers: bigint
}

describe.runIf(databaseKinds.includes("postgres"))("two replicas over one database", () => {
  it.live(
    "two replicas version one resource together and see each other's changes",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const [first, second] = yield* startTwo([quiet])
          const payer = yield* first.account()
          const payTo = (yield* first.account()).publicKey()
          const body = yield* declaring(first, { payer, payTo, url })
          expect((yield* browse(second))["items"]).toEqual([])
          yield* Effect.forEach(Array.from({ length: 40 }), (_, at) => (at % 2 === 0 ? first : second).verify(body), {
            concurrency: "unbounded"
          })
          for (const replica of [first, second]) {
            const { items } = yield* eventually(browse(replica), ({ items }) => items.length === 1)
            expect(items).toHaveLength(1)
            expect((yield* explain(replica, url))["listings"]).toMatchObject([{ resource: url, version: 1 }])
          }
          yield* bindRecipients(first, [payTo])
          const changed = yield* declaring(first, { payer, payTo, url, about: { description: "New words" } })
          // The recipient's grade from before the binding is cached for seconds.
          yield* eventually(
            Effect.map(second.verify(changed), (answer) => outcomes(answer)?.["catalog"].status as string),
            (status) => status === "success"
          )
          const shown = yield* eventually(browse(first), ({ items }) => items[0]?.description === "New words")
          expect(shown["items"]).toMatchObject([{ description: "New words" }])
          expect((yield* explain(first, url))["listings"][0].version).toBe(2)
        })
      ),
    240_000
  )

  it.live(
    "two replicas count a settled payment once",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const [first, second] = yield* startTwo([quiet])
          const payTo = (yield* first.account()).publicKey()
          const payers = [yield* first.account(), yield* first.account()]
          const extensions = (id: number) => ({
            "payment-identifier": { info: { required: false, id: `pay_counted_once_${String(id).padStart(8, "0")}` } }
          })
          let id = 0
          for (const payer of [payers[0]!, payers[0]!, payers[1]!]) {
            const body = yield* declaring(first, { payer, payTo, url, extensions: extensions(id++) })
            const key = { "idempotency-key": `counted-once-${String(id).padStart(8, "0")}` }
            const settled = yield* first.settle(body, key)
            expect(settled.json.success, settled.text).toBe(true)
            // Once its delivery is confirmed both repeat it, concurrently and one after the other.
            for (const readers of [[second, first], [second], [first]])
              yield* Effect.forEach(
                readers,
                (replica) => eventually(replica.settle(body, key), ({ json }) => json.success === true),
                { concurrency: "unbounded" }
              )
          }
          const activity = first.sql<Activity>`select settled, payers from catalog_activity`
          yield* eventually(activity, ([row]) => (row?.settled ?? 0n) >= 3n)
          // One more run of both journal readers, so that a second count would have arrived.
          for (const replica of [first, second]) yield* explain(replica, url)
          expect(yield* activity).toMatchObject([{ settled: 3n, payers: 2n }])
          expect(yield* first.sql`select settled from catalog_payers order by settled`).toMatchObject([
            { settled: 1n },
            { settled: 2n }
          ])
        })
      ),
    240_000
  )

  it.live(
    "replicas accept each other's cursors to the last page, and no others [S124][S125][S126]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const [first, second] = yield* startTwo([quiet])
          const payer = yield* first.account()
          const payTo = (yield* first.account()).publicKey()
          for (let at = 0; at < 5; at++)
            yield* verified(first, yield* declaring(first, { payer, payTo, url: `${url}/${at}` }))
          yield* eventually(browse(second), ({ pagination }) => pagination.total === 5)
          const seen: Array<string> = []
          let query = "?limit=2&type=http"
          for (let page = 0; page < 3; page++) {
            const { items, pagination } = yield* browse(page % 2 === 0 ? first : second, query)
            seen.push(...items.map(({ resource }: Json) => resource))
            query = `?limit=2&type=http&cursor=${pagination.cursor}`
            // Resources listed in between belong to a later snapshot.
            yield* verified(second, yield* declaring(first, { payer, payTo, url: `${url}/later/${page}` }))
          }
          expect(seen).toEqual([4, 3, 2, 1, 0].map((at) => `${url}/${at}`))
          expect(query).toContain("cursor=null")
        })
      ),
    240_000
  )

  it.live(
    "two replicas probe an origin once and share its answer [S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const [first, second] = yield* startTwo(["catalog_security.probe_pause_seconds=3600"])
          const origin = yield* startOrigin
          const payer = yield* first.account()
          const payTo = (yield* first.account()).publicKey()
          origin.answers.set("/.well-known/x402", { status: 200, body: { payTo } })
          const paths = ["/a", "/b", "/c", "/d"]
          yield* Effect.forEach(paths, (path, at) =>
            Effect.flatMap(
              declaring(first, { payer, payTo, url: `${origin.url}${path}`, extension: queryDeclaration() }),
              (body) => verified(at % 2 === 0 ? first : second, body)
            )
          )
          for (const replica of [first, second]) {
            for (const path of paths) {
              const owned = yield* eventually(
                resolve(replica, `${origin.url}${path}`),
                ({ json }) => json.resource?.ownership === "proven"
              )
              expect(owned.json.resource.ownership).toBe("proven")
            }
          }
          const probes = yield* first.sql<{ fence: bigint; outcome: string }>`select fence, outcome from catalog_probes`
          expect(probes).toEqual(paths.map(() => ({ fence: 1n, outcome: "Proven" })))
          const moves = yield* first.sql<{ move: string }>`select move from catalog_decisions where move = 'proven'`
          expect(moves).toHaveLength(paths.length)
          // Each replica caches an origin's document for a while.
          expect(origin.asked.filter((line) => line.endsWith("/x402")).length).toBeLessThanOrEqual(2)
        })
      ),
    240_000
  )
})
