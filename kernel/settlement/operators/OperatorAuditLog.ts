// The audit log of operator actions: recorded before the action, and its result after it. The dashboard and the
// commands that a running facilitator executes go through here, so one list has both. An action that cannot be recorded
// is not done; one without a known result (the database was lost, the process died) stays as requested. Without an
// audit sink, actions are done unrecorded.
import { Context, Effect, Layer, type Scope } from "effect"
import { SqlError } from "effect/sql"

export interface AuditEntry {
  /** The operator's key label, or `command line`. */
  readonly by: string
  readonly action: string
  /** What it is about; at most 100 characters are kept. */
  readonly subject: string
  /** The operator's reason. */
  readonly note: string
}

/** Notes how a move went: `done`, or why it was refused. */
export type RecordOutcome = (outcome: string) => Effect.Effect<unknown, SqlError.SqlError>

/** Notes a move before it is done. */
export type AuditSink = (note: AuditEntry) => Effect.Effect<RecordOutcome, SqlError.SqlError>

export class OperatorAuditLog extends Context.Service<
  OperatorAuditLog,
  {
    /** Has a keeper note every move, for as long as the Scope lives. */
    readonly register: (keeper: AuditSink) => Effect.Effect<void, never, Scope.Scope>
    /** Does a move between its two notes. */
    readonly record: <A, E extends { readonly message: string }, R>(
      note: AuditEntry,
      move: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | SqlError.SqlError, R>
  }
>()("tollkeeper/settlement/OperatorAuditLog") {
  static readonly layer = Layer.sync(OperatorAuditLog, () => {
    const keepers = new Set<AuditSink>()
    return OperatorAuditLog.of({
      register: (keeper) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => keepers.add(keeper)),
            () => Effect.sync(() => keepers.delete(keeper))
          )
        ),
      record: Effect.fnUntraced(function* (note, move) {
        const ends = yield* Effect.forEach(keepers, (keeper) => keeper(note))
        const end = (outcome: string) => Effect.forEach(ends, (noteEnd) => noteEnd(outcome), { discard: true })
        const done = yield* Effect.tapError(move, (error) =>
          error instanceof SqlError.SqlError ? Effect.void : end(error.message)
        )
        yield* end("done")
        return done
      })
    })
  })
}
