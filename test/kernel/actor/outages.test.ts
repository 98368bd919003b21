// A database that does not answer: one line for all actors when it begins, one when it ends, without a secret.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { outageOf } from "../../../kernel/actor/outages.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { CurrentPlugin } from "../../../kernel/contract/CurrentPlugin.ts"

const refused = {
  _tag: "SqlError",
  message: "connect to postgres://user:hunter2@10.0.0.7/tollkeeper",
  reason: { _tag: "ConnectionError", cause: { code: "ECONNREFUSED", address: "10.0.0.7", port: 5432 } }
}

it.effect("an outage is one line for all actors, and its end another", () => {
  const lines: Array<string> = []
  let isSilent = true
  return Effect.gen(function* () {
    for (const id of ["one", "two", "three"])
      yield* reconciler({
        id,
        every: "1 second",
        turn: Effect.suspend(() => (isSilent ? Effect.fail(refused) : Effect.void))
      })
    // Its first turn fails and the others ask nothing: it does not end an outage that still stops the others.
    let turns = 0
    yield* reconciler({
      id: "idle",
      every: "1 second",
      turn: Effect.suspend(() => (turns++ ? Effect.void : Effect.fail(refused)))
    })
    yield* TestClock.adjust("3 minutes")
    isSilent = false
    yield* TestClock.adjust("7 seconds")
    expect(lines).toEqual([
      expect.stringMatching(
        /^Warn the database is unreachable since 1970-.*Z \(ECONNREFUSED 10.0.0.7:5432\); settling is/
      ),
      expect.stringMatching(/^Info the database answers again after 18[456] s; settling continues/)
    ])
    expect(lines.join()).not.toContain("hunter2")
  }).pipe(
    Effect.scoped,
    Effect.provideService(CurrentPlugin, "test"),
    Effect.provideService(References.MinimumLogLevel, "Info"),
    Effect.provide(
      Layer.merge(
        Supervisor.layer,
        Logger.layer([
          Logger.make<unknown, void>(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
        ])
      )
    )
  )
})

it("recognizes a silent ledger, and leaves other failures alone", () => {
  expect(outageOf({ _tag: "LedgerUnavailable" })).toEqual({ subject: "the ledger's RPC", detail: "no answer" })
  expect(outageOf({ _tag: "SqlError", reason: { _tag: "ConstraintError" } })).toBeUndefined()
  expect(outageOf({ _tag: "SqlError", reason: { _tag: "UnknownError", cause: { code: "57P01" } } })).toEqual({
    subject: "the database",
    detail: "57P01"
  })
  expect(outageOf("a text")).toBeUndefined()
})
