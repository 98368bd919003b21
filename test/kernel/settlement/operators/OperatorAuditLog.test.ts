// Manual operator actions are audited around the action: before it, with its result, and no more once the sink is gone.
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlError } from "effect/sql"
import { describe } from "vitest"
import { type AuditSink, OperatorAuditLog } from "../../../../kernel/settlement/operators/OperatorAuditLog.ts"

const away = new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: new Error("away") }) })
const note = { by: "ops", action: "rotate", subject: "sponsor", note: "why" }

/** A log whose one keeper writes into `kept`, and a move that does so too. */
const withLog = <A, E>(
  use: (log: OperatorAuditLog["Service"], kept: Array<string>) => Effect.Effect<A, E, Scope.Scope>,
  begin: Effect.Effect<void, SqlError.SqlError> = Effect.void
) =>
  Effect.gen(function* () {
    const log = yield* OperatorAuditLog
    const kept: Array<string> = []
    const keeper: AuditSink = ({ by, action: move, subject }) =>
      Effect.map(begin, () => {
        kept.push(`${by} ${move} ${subject}`)
        return (outcome) => Effect.sync(() => kept.push(outcome))
      })
    yield* log.register(keeper)
    return yield* use(log, kept)
  }).pipe(Effect.scoped, Effect.provide(OperatorAuditLog.layer))

describe("an operator action", () => {
  it.effect("an operator action is audited before and after it runs", () =>
    withLog((log, kept) =>
      Effect.gen(function* () {
        yield* log.record(
          note,
          Effect.sync(() => kept.push("moved"))
        )
        expect(kept).toEqual(["ops rotate sponsor", "moved", "done"])
      })
    )
  )

  it.effect("a refused operator action is audited with its reason", () =>
    withLog((log, kept) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(log.record(note, Effect.fail(new Error("not now"))))
        expect([Exit.isFailure(exit), kept]).toEqual([true, ["ops rotate sponsor", "not now"]])
      })
    )
  )

  it.effect("an operator action without a known result stays requested", () =>
    withLog((log, kept) =>
      Effect.gen(function* () {
        yield* Effect.exit(log.record(note, Effect.fail(away)))
        yield* Effect.exit(log.record(note, Effect.die("a defect") as Effect.Effect<void, Error>))
        expect(kept).toEqual(["ops rotate sponsor", "ops rotate sponsor"])
      })
    )
  )

  it.effect("an operator action does not run if it cannot be audited", () =>
    withLog(
      (log, kept) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(
            log.record(
              note,
              Effect.sync(() => kept.push("moved"))
            )
          )
          expect([Exit.isFailure(exit), kept]).toEqual([true, []])
        }),
      Effect.fail(away)
    )
  )

  it.effect("an operator action runs without audit once the audit sink is gone", () =>
    Effect.gen(function* () {
      const log = yield* OperatorAuditLog
      const scope = yield* Scope.make()
      yield* Scope.provide(
        log.register(() => Effect.die("asked")),
        scope
      )
      yield* Scope.close(scope, Exit.void)
      expect(yield* log.record(note, Effect.succeed("moved"))).toBe("moved")
    }).pipe(Effect.provide(OperatorAuditLog.layer))
  )
})
