// What waits for a person: one file a request in the state folder, so that an operator decides it by the command line
// while the tool server runs. An approval is for one call of one agent on one set of terms, and is used up by the one
// payment that it lets pass: the file is taken away before anything is reserved, and whoever takes it away first has
// it. A request and an approval end with time. The log of decisions stands beside them, one line a decision.
import { Clock, Context, Effect, FileSystem, Layer, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { type Approval, decodeApproval, encodeApproval, encodeDecision, type LoggedDecision } from "./ApprovalWire.ts"

/** Requests that wait at once; more are refused. */
const pendingMax = 1_000
/** A log that is longer begins anew, and the one before is kept. */
const logBytesMax = 16_777_216n

type Kept<A> = Effect.Effect<A, BudgetUnavailable>

/** Adds a line to a file that is begun anew when it has grown too long. */
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
  {
    /** Requests that are not too old, oldest first. */
    readonly all: (maxAgeMillis: number) => Kept<ReadonlyArray<Approval>>
    /** False when there is no room for another request; one that stands already stays as it is. */
    readonly ask: (approval: Approval, maxAgeMillis: number) => Kept<boolean>
    readonly find: (id: string, maxAgeMillis: number) => Kept<Approval | undefined>
    /** True for the one that takes it away. */
    readonly take: (id: string) => Effect.Effect<boolean>
    /** False when nobody asks for it. */
    readonly decide: (id: string, state: "approved" | "denied", maxAgeMillis: number) => Kept<boolean>
    readonly log: (decision: LoggedDecision) => Kept<void>
    /** The log's text, the part before the last cut included. */
    readonly logged: Kept<string>
  }
>()("tollkeeper/mcp-tools-pay/Approvals") {
  static readonly layer = Layer.effect(
    Approvals,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { randomBytes } = yield* Crypto
      const folder = path.join((yield* Host).stateFolder, "tools-approvals")
      const logFile = path.join((yield* Host).stateFolder, "tools-decisions.jsonl")
      const guarded = <A, E>(effect: Effect.Effect<A, E>): Kept<A> =>
        Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))
      const fileOf = (id: string) => path.join(folder, `${id.replace(/[^0-9a-f]/g, "")}.json`)
      const made = files.makeDirectory(folder, { recursive: true, mode: 0o700 })

      const read = Effect.fnUntraced(function* (file: string, maxAgeMillis: number) {
        const text = yield* Effect.option(files.readFileString(file))
        if (text._tag === "None") return undefined
        const approval = yield* decodeApproval(text.value)
        const isOld = (yield* Clock.currentTimeMillis) - approval.askedAtMillis > maxAgeMillis
        if (isOld) yield* Effect.ignore(files.remove(file))
        return isOld ? undefined : approval
      })

      const write = Effect.fnUntraced(function* (approval: Approval) {
        yield* made
        const draft = `${fileOf(approval.id)}.draft`
        yield* files.writeFileString(draft, encodeApproval(approval), { mode: 0o600 })
        yield* files.rename(draft, fileOf(approval.id))
      })

      const all = Effect.fnUntraced(function* (maxAgeMillis: number) {
        yield* made
        const names = (yield* files.readDirectory(folder)).filter((name) => name.endsWith(".json"))
        const found = yield* Effect.forEach(names, (name) => read(path.join(folder, name), maxAgeMillis))
        return found.flatMap((one) => one ?? []).sort((a, b) => a.askedAtMillis - b.askedAtMillis)
      })

      const textOf = (file: string) => Effect.orElseSucceed(files.readFileString(file), () => "")

      return Approvals.of({
        all: (maxAgeMillis) => guarded(all(maxAgeMillis)),
        find: (id, maxAgeMillis) => guarded(read(fileOf(id), maxAgeMillis)),
        ask: (approval, maxAgeMillis) =>
          guarded(
            Effect.gen(function* () {
              const known = yield* all(maxAgeMillis)
              if (known.some(({ id }) => id === approval.id)) return true
              if (known.length >= pendingMax) return false
              yield* write(approval)
              return true
            })
          ),
        take: (id) => {
          // To rename succeeds for one, whereas two may remove a file at the same moment.
          const taken = `${fileOf(id)}.${Hex.encode(randomBytes(8))}`
          return Effect.matchEffect(files.rename(fileOf(id), taken), {
            onFailure: () => Effect.succeed(false),
            onSuccess: () => Effect.as(Effect.ignore(files.remove(taken)), true)
          })
        },
        decide: (id, state, maxAgeMillis) =>
          guarded(
            Effect.gen(function* () {
              const approval = yield* read(fileOf(id), maxAgeMillis)
              if (approval === undefined || approval.state !== "pending") return false
              yield* write({ ...approval, state, askedAtMillis: yield* Clock.currentTimeMillis })
              return true
            })
          ),
        log: (decision) => guarded(appended(files, logFile, encodeDecision(decision))),
        logged: Effect.zipWith(textOf(`${logFile}.before`), textOf(logFile), (before, now) => before + now)
      })
    })
  )
}
