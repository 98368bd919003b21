// The payment map of a growing log: each outcome's proof holds in the map of its checkpoint; a second leaf of a payment
// replaces the first, so the first no longer verifies; and a log without a map is read into it.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { checkMap, leafHash, mapPlace, openCheckpoint, sha256 } from "../../../examples/receipts/verify.mjs"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { receiptSecrets } from "./secrets.ts"

const hashOf = (i: number) => i.toString(16).padStart(64, "0")

const publish = (facilitator: Facilitator, from: number, to: number) =>
  facilitator.publishedBy(facilitator.sql`insert into kernel_facts (type, version, subject, principal, data)
    select 'settlement.failed', 1, gen_random_uuid()::text, 'anonymous', jsonb_build_object(
      'transaction', lpad(to_hex(i), 64, '0'), 'moved', null, 'feeChargedStroops', '100', 'ledger', null,
      'reason', 'settle_ledger_transaction_failed', 'by', 'operator')
    from generate_series(${from}::int, ${to}::int) i`)

const provenIn = (facilitator: Facilitator, i: number, outcomes = 1) =>
  Effect.map(
    eventually(
      facilitator.ask(`/receipts/${hashOf(i)}?proof=1`),
      ({ json }) =>
        json?.outcomes?.length === outcomes &&
        json.outcomes.every(({ proof }: any) => proof?.map && proof.size === json.outcomes[0].proof.size)
    ),
    ({ json }) => json.outcomes
  )

/** Rejects unless the map of the outcome's checkpoint has this outcome for its payment. */
const isCurrent = async ({ proof, record, salt }: any, did: any) => {
  const tree: any = await openCheckpoint(proof.checkpoint, did)
  const commitment = Buffer.from(await sha256(Buffer.from(salt, "base64url"), record), "hex")
  const leaf = await leafHash(Buffer.concat([Buffer.of(1), commitment]))
  await checkMap(tree, proof.map, await mapPlace(proof.map, JSON.parse(record), salt, proof.index, leaf))
}

describe.each(databaseKinds)("the payment map on %s", (kind) => {
  it.live(
    "has the newest leaf of each payment, also of an older log",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database: kind,
          channels: 1,
          environment: receiptSecrets,
          set: ["plugins=[ledger-local,x402-exact,receipts]", "receipts.host=pay.example"]
        })
        const { json: did } = yield* eventually(
          facilitator.ask("/.well-known/did.json"),
          ({ json }) => json?.service?.[0]?.mapSince > 0
        )
        yield* publish(facilitator, 1, 30)
        yield* provenIn(facilitator, 30)
        yield* publish(facilitator, 31, 700)
        yield* provenIn(facilitator, 700)
        for (const i of [1, 30, 31, 350, 700]) {
          const [outcome] = yield* provenIn(facilitator, i)
          yield* Effect.promise(() => isCurrent(outcome, did))
          expect(JSON.stringify(outcome.proof.map).length).toBeLessThan(3_000)
        }

        yield* publish(facilitator, 350, 350)
        const [former, newest] = yield* provenIn(facilitator, 350, 2)
        yield* Effect.promise(() => isCurrent(newest, did))
        yield* Effect.promise(() => expect(isCurrent(former, did)).rejects.toThrow("another leaf of this payment"))

        // Only the pages that the newest checkpoint needs are kept.
        const [row] = yield* facilitator.sql<{ pages: bigint }>`select count(*) as pages from receipts_map_pages`
        expect(Number(row!.pages)).toBeLessThan(60)

        // A log of a version that had no map: its newest checkpoint is signed again, with the map.
        yield* facilitator.sql`delete from receipts_map`
        yield* facilitator.sql`delete from receipts_map_pages`
        yield* facilitator.sql`update receipts_epochs set map_secret = null, map_size = 0, map_since = null`
        yield* facilitator.sql`update receipts_checkpoints
          set note = replace(note, chr(10) || 'map ', chr(10) || 'mop ')`
        for (const i of [1, 700]) {
          const [outcome] = yield* provenIn(facilitator, i)
          yield* Effect.promise(() => isCurrent(outcome, did))
        }

        // An idle log signs its size again after an hour, so that a frozen one shows.
        const checkpoint = Effect.map(facilitator.ask("/log/checkpoint"), ({ text }) => text)
        const form = /^(pay\.example\/log\n703\n\S+\n)time (\d+)\n(map .*\n)\n/
        const [, head, before, map] = form.exec(yield* checkpoint)!
        yield* facilitator.sql`update receipts_checkpoints set signed_at = signed_at - interval '1 hour'`
        const later = yield* eventually(checkpoint, (text) => Number(form.exec(text)?.[2]) > Number(before))
        expect(form.exec(later)).toMatchObject({ 1: head, 3: map })
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
