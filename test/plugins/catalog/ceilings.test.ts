// Limits on the data that callers without a key may write: every table has one, and this test fills the catalog up to
// its limit.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { describe, it } from "vitest"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { FirstListings } from "../../../plugins/catalog/store/FirstListings.ts"
import { databaseKinds, databaseLayer } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { openStore } from "./store.ts"

/** How much of each table a caller without a key may fill. */
const ceilings: ReadonlyArray<readonly [tables: RegExp, ceiling: string]> = [
  [/^catalog_(impressions)$/, "20,000 rows of 1 KB a day and replica, for search.impressions_days"],
  [/^catalog_missed_(searches|words)$/, "22,000 rows of 1 KB a day, for search.missed_days"],
  [/^catalog_secrets$/, "no caller writes it"],
  [/^(catalog|search_lexical)_/, "catalog_security.free_bytes_max, and what is written in ten seconds"],
  [/^search_semantic_/, "vectors of listings: at most a multiple of catalog_security.free_bytes_max"],
  [/^kernel_account_sessions$/, "20,000 rows of 1 KB"],
  [/^kernel_(ended_sessions|operator_acts|limits|lost_settlements)$/, "keys and operators alone write it"],
  [/^kernel_(settlements|attempts|rebuilds|lost_deliveries)$/, "paid for: sponsor budget of callers without a key"],
  [/^kernel_facts$/, "settlements and listings, each within its own ceiling"],
  [/^kernel_sponsor_budget/, "a row of 100 bytes a day for each address that settles; the total budget ends it"],
  [/^kernel_/, "no caller writes it: replicas, keys, channels and ledgers"],
  [/^analytics_(refusals|verifications)$/, "a row for each reason and key a day"],
  [/^(analytics|receipts|webhooks)_/, "settlements, or the process itself"],
  [
    /^batch_store_charges$/,
    "keys alone: batch_store.charges_per_key_max of 300 bytes, and an hour's charges in the key's points"
  ],
  [/^batch_store_/, "keys alone: batch_store.channels_per_key_max; 64 policies"],
  [/^(mcp_tools|dashboard)_/, "agents' payments, operators and the process itself"]
]

it("states a ceiling for every table", () => {
  const schema = readFileSync(new URL("../../../migrations/schema.sql", import.meta.url), "utf8")
  const tables = [...schema.matchAll(/^create table (?:public\.)?(\w+)/gim)].map(([, name]) => name!)
  expect(tables.length).toBeGreaterThan(60)
  expect(tables.filter((table) => !ceilings.some(([form]) => form.test(table)))).toEqual([])
})

const services = (kind: (typeof databaseKinds)[number]) =>
  Facts.layer.pipe(Layer.provideMerge(databaseLayer(kind, ["kernel", "catalog"])), Layer.provideMerge(Supervisor.layer))

for (const kind of databaseKinds) {
  describe(`the catalog's ceiling on ${kind}`, () =>
    layer(services(kind), { timeout: "120 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "lists only what was paid for once its tables are full",
        timed(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const size = Effect.map(
              sql<{ bytes: number }>`select sum(pg_total_relation_size(oid))::float8 as bytes from pg_class
              where relkind = 'r' and relname like 'catalog%'`,
              ([row]) => row!.bytes
            )
            const room = 200_000
            const freeBytesMax = (yield* size) + room
            const { declare, parts, settle } = yield* openStore({ freeBytesMax })
            const said = (n: number) => ({ resource: `https://shop${n}.example/x` })
            let refused: string | undefined
            for (let n = 0; n < 2_000 && refused === undefined; n++) {
              if (n % 10 === 0) yield* TestClock.adjust("11 seconds")
              const { decision, detail } = yield* declare(said(n), { payer: `GFREE${n}` })
              if (decision === "rejected") refused = detail
            }
            expect(refused).toMatch(/lists only what was paid for/)
            expect(yield* size).toBeLessThan(freeBytesMax + 200_000)
            expect((yield* settle(said(9_999), { payer: "GBUYER", dollars: 1 })).decision).toBe("listed")
            const { listOrigin } = Context.get(parts, FirstListings)
            const words = {} as Parameters<typeof listOrigin>[0]["words"]
            expect(yield* listOrigin({ words, payTos: ["GOWNER"], isPaid: false }, new Date(0))).toBe("beyond_limit")
          })
        )
      )
    }))
}
