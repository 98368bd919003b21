// A database that does not answer: one line for all actors at the beginning, one at the end, without a secret.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, References, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { outageOf, nameOutageAddress } from "../../../kernel/actor/outages.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { CurrentPlugin } from "../../../kernel/contract/Contract.ts"

const refused = {
  _tag: "SqlError",
  message: "connect to postgres://user:hunter2@10.0.0.7/tollkeeper",
  reason: { _tag: "ConnectionError", cause: { code: "ECONNREFUSED", address: "10.0.0.7", port: 5432 } }
}

/** Runs actors with a logger; returns the log, a line each. */
const logged = <E>(play: (lines: ReadonlyArray<string>) => Effect.Effect<void, E, Supervisor | Scope.Scope>) => {
  const lines: Array<string> = []
  return play(lines).pipe(
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
}

it.effect("an outage is one line for all actors, and its end another", () =>
  logged((lines) =>
    Effect.gen(function* () {
      let isSilent = true
      for (const id of ["one", "two", "three"])
        yield* reconciler({
          id,
          every: "1 second",
          turn: Effect.suspend(() => (isSilent ? Effect.fail(refused) : Effect.void))
        })
      // Its first turn fails and the others do not use the database: they do not end an outage that still stops other
      // actors.
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
    })
  )
)

const closed = { _tag: "SqlError", reason: { _tag: "ConnectionError", cause: new Error("Connection closed") } }
const timedOut = { _tag: "LedgerUnavailable", operation: "getLatestLedger", message: "TimeoutError", isSilent: true }

it.effect("the line waits a moment for the system's code, and has the place where the error has none", () =>
  logged((lines) =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor
      yield* nameOutageAddress(supervisor, "the database", "db.example:5432")
      yield* nameOutageAddress(supervisor, "the ledger's RPC", "rpc.example")
      let turns = 0
      yield* reconciler({
        id: "sql",
        every: "1 second",
        turn: Effect.suspend(() =>
          Effect.fail(
            turns++ < 3 ? closed : { ...closed, reason: { ...closed.reason, cause: { code: "ECONNREFUSED" } } }
          )
        )
      })
      yield* reconciler({ id: "rpc", every: "1 second", turn: Effect.fail(timedOut) })
      yield* TestClock.adjust("2 seconds")
      expect(lines).toEqual([])
      yield* TestClock.adjust("1 minute")
      expect(lines).toEqual([
        expect.stringMatching(
          /^Warn the database is unreachable since 1970-01-01T00:00:00\S+ \(ECONNREFUSED db.example:5432\);/
        ),
        expect.stringMatching(
          /^Warn the ledger's RPC is unreachable since 1970-01-01T00:00:00\S+ \(no answer in time rpc.example\);/
        )
      ])
    })
  )
)

it("recognizes a silent ledger, and leaves other failures alone", () => {
  expect(outageOf(timedOut)).toEqual({ subject: "the ledger's RPC" })
  expect(outageOf({ ...timedOut, code: "HTTP 503" })).toEqual({ subject: "the ledger's RPC", code: "HTTP 503" })
  // The RPC is available if it returns an implausible answer, or if a signer does not sign.
  expect(outageOf({ _tag: "LedgerUnavailable", operation: "sign", message: "no signature" })).toBeUndefined()
  expect(outageOf({ _tag: "SqlError", reason: { _tag: "ConstraintError" } })).toBeUndefined()
  expect(outageOf({ _tag: "SqlError", reason: { _tag: "UnknownError", cause: { code: "57P01" } } })).toEqual({
    subject: "the database",
    code: "57P01"
  })
  expect(outageOf({ _tag: "DatabaseUnavailable", cause: { code: "ENOTFOUND", hostname: "db.example" } })).toEqual({
    subject: "the database",
    code: "ENOTFOUND",
    address: "db.example"
  })
  expect(outageOf("a text")).toBeUndefined()
})
