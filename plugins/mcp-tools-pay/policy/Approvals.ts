// Requests for approval, stored with the budget, so that the replicas of a tool server share them. An approval is for
// one call of one agent on one set of terms, and allows a single payment: it is removed atomically before anything is
// reserved, so one caller gets it. Requests and approvals expire. The log of decisions is in the state folder of each
// process, one line per decision.
import { Context, Deferred, Effect, FileSystem, Layer, Path } from "effect"
import { Host } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { StoreDatabase } from "../budget/StoreDatabase.ts"
import { approvalFiles } from "./approvalFiles.ts"
import { approvalRows } from "./approvalRows.ts"
import type { ApprovalStore } from "./ApprovalStore.ts"
import { encodeDecision, type LoggedDecision } from "./ApprovalWire.ts"

/** A longer log is rotated; one older file is kept. */
const logBytesMax = 16_777_216n

/** How often we poll the store for changes by other processes. */
const pollInterval = "200 millis"

/** Wraps a store so that its changes wake the waiting calls of this process. */
const signalled = (store: ApprovalStore) => {
  const waiters = new Map<string, Deferred.Deferred<void>>()
  const wake = (id: string) =>
    Effect.suspend(() => {
      const waiter = waiters.get(id)
      waiters.delete(id)
      return waiter === undefined ? Effect.void : Deferred.succeed(waiter, undefined)
    })
  return {
    changed: (id: string) =>
      Effect.suspend(() => {
        const waiter = waiters.get(id) ?? Deferred.makeUnsafe<void>()
        waiters.set(id, waiter)
        return Effect.asVoid(Effect.timeoutOption(Deferred.await(waiter), pollInterval))
      }).pipe(Effect.ensuring(wake(id))),
    take: (id: string) => Effect.tap(store.take(id), () => wake(id)),
    decide: (...args: Parameters<ApprovalStore["decide"]>) => Effect.tap(store.decide(...args), () => wake(args[0]))
  }
}

/** Appends a line to a file; rotates the file if it is too long. */
const appended = Effect.fnUntraced(function* (files: FileSystem.FileSystem, file: string, line: string) {
  const size = yield* Effect.orElseSucceed(
    Effect.map(files.stat(file), (info) => info.size),
    () => 0n
  )
  if (size > logBytesMax) yield* files.rename(file, `${file}.before`)
  yield* files.writeFileString(file, line, { flag: "a", mode: 0o600 })
})

export class Approvals extends Context.Service<
  Approvals,
  ApprovalStore & {
    /**
     * Ends when this process changes the request, and after a poll interval, since another process may have changed it.
     */
    readonly changed: (id: string) => Effect.Effect<void>
    readonly log: (decision: LoggedDecision) => Effect.Effect<void, BudgetUnavailable>
    /** The log's text, including the rotated part. */
    readonly logged: Effect.Effect<string, BudgetUnavailable>
  }
>()("tollkeeper/mcp-tools-pay/Approvals") {
  static readonly layer = Layer.effect(
    Approvals,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const logFile = path.join((yield* Host).stateFolder, "tools-decisions.jsonl")
      const { shared } = yield* StoreDatabase
      const store = yield* shared === undefined ? approvalFiles : Effect.provideContext(approvalRows, shared)
      const textOf = (file: string) => Effect.orElseSucceed(files.readFileString(file), () => "")
      return Approvals.of({
        ...store,
        ...signalled(store),
        log: (decision) =>
          Effect.mapError(
            appended(files, logFile, encodeDecision(decision)),
            (cause) => new BudgetUnavailable({ cause })
          ),
        logged: Effect.zipWith(textOf(`${logFile}.before`), textOf(logFile), (before, now) => before + now)
      })
    })
  )
}
