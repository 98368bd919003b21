// The rows through which replicas agree on the signing keys: who signs, and how far a rotation is.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { makeRotationJournal } from "../../../../kernel/settlement/channels/RotationJournal.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { storeLayer } from "../store.ts"

const [old, next] = [
  { sponsor: "old sponsor", channels: "old channels" },
  { sponsor: "new sponsor", channels: "new channels" }
]

for (const kind of databaseKinds) {
  describe(`the journal of rotations on ${kind}`, () =>
    layer(storeLayer(kind), { timeout: "240 seconds" })((it) => {
      it.effect("a finished rotation never goes back", () =>
        Effect.gen(function* () {
          const journal = yield* makeRotationJournal("ledger:finished", "one")
          yield* journal.record(() => Effect.succeed({ from: old, to: { ...old, sponsor: next.sponsor } }))
          const newest = Effect.map(journal.rotations, ([rotation]) => rotation!)
          expect(yield* newest).toEqual({
            generation: 1,
            kind: "sponsor",
            from: old.sponsor,
            to: next.sponsor,
            state: "prepared"
          })
          for (const [isDone, state] of [
            [false, "taken"],
            [true, "done"],
            [false, "done"]
          ] as const) {
            yield* journal.advance(yield* newest, isDone)
            expect((yield* newest).state).toBe(state)
          }
        })
      )

      it.effect("a change of both kinds is two generations", () =>
        Effect.gen(function* () {
          const journal = yield* makeRotationJournal("ledger:both", "one")
          yield* journal.record(() => Effect.succeed({ from: old, to: next }))
          expect((yield* journal.rotations).map(({ generation, kind: of, to }) => [generation, of, to])).toEqual([
            [2, "sponsor", next.sponsor],
            [1, "channels", next.channels]
          ])
          // The way back ends at the old keys: their own rotation is gone.
          yield* journal.record(() => Effect.succeed({ from: next, to: old }))
          expect((yield* journal.rotations).map(({ from, to }) => `${from} → ${to}`)).toEqual([
            "new sponsor → old sponsor",
            "new channels → old channels"
          ])
        })
      )

      it.effect("a replica counts while it shows that it lives", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [one, two] = [
            yield* makeRotationJournal("ledger:live", "one"),
            yield* makeRotationJournal("ledger:live", "two")
          ]
          yield* one.announce(old)
          yield* two.announce(next)
          const signers = Effect.map(one.live, (all) => all.map(({ sponsor }) => sponsor).sort())
          expect(yield* signers).toEqual(["new sponsor", "old sponsor"])
          yield* sql`update kernel_signers set seen_at = clock_timestamp() - interval '91 seconds'
            where network = 'ledger:live'`
          expect(yield* signers).toEqual([])
          // The same keys are announced again after half a minute, other keys immediately.
          yield* one.announce(old)
          yield* two.announce(old)
          expect(yield* signers).toEqual(["old sponsor"])
          yield* TestClock.adjust("31 seconds")
          yield* one.announce(old)
          expect(yield* signers).toEqual(["old sponsor", "old sponsor"])
          yield* two.leave
          expect(yield* signers).toEqual(["old sponsor"])
        })
      )
    }))
}
