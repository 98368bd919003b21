// Requests for approval as files, one per request, in the state folder that the tool servers of one machine share. An
// operator can thus decide them by the command line while the servers run. To use an approval or decide a request, a
// process claims its file by renaming it, and only the claimant changes it. A crash half way through a decision leaves
// no request, and the agent asks again.
import { Clock, Effect, FileSystem, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { turnsIn } from "../budget/turnsIn.ts"
import { replaceFile } from "../replaceFile.ts"
import {
  type ApprovalStore,
  type ApprovalDecision,
  leftMillis,
  pendingMax,
  pendingPerAgentMax,
  usedMillis
} from "./ApprovalStore.ts"
import { type Approval, decodeApproval, encodeApproval } from "./ApprovalWire.ts"

/** The files of one state folder, with atomic steps. */
const makeFiles = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { randomBytes } = yield* Crypto
  const folder = path.join((yield* Host).stateFolder, "tools-approvals")
  const fileOf = (id: string) => path.join(folder, `${id.replace(/[^0-9a-f]/g, "")}.json`)
  const ownName = (id: string) => `${fileOf(id)}.${Hex.encode(randomBytes(8))}`
  const made = files.makeDirectory(folder, { recursive: true, mode: 0o700 })

  const read = Effect.fnUntraced(function* (file: string, maxAgeMillis: number) {
    const text = yield* Effect.option(files.readFileString(file))
    if (text._tag === "None") return undefined
    const approval = yield* decodeApproval(text.value)
    const ageMax = approval.state === "used" ? Math.min(usedMillis, maxAgeMillis) : maxAgeMillis
    const isOld = (yield* Clock.currentTimeMillis) - approval.askedAtMillis > ageMax
    if (isOld) yield* Effect.ignore(files.remove(file))
    return isOld ? undefined : approval
  })

  const write = Effect.fnUntraced(function* (approval: Approval) {
    yield* made
    const own = { draft: ownName(approval.id), flag: "wx" } as const
    yield* replaceFile(files, fileOf(approval.id), encodeApproval(approval), own)
  })

  /** Claims the file under a unique name: of concurrent renames one succeeds, whereas two may remove the same file. */
  const takeAway = (id: string) => {
    const own = ownName(id)
    return Effect.match(files.rename(fileOf(id), own), { onFailure: () => undefined, onSuccess: () => own })
  }

  const all = Effect.fnUntraced(function* (maxAgeMillis: number) {
    // The first request creates the folder; a read before that finds no approvals.
    if (!(yield* files.exists(folder))) return []
    const names = (yield* files.readDirectory(folder)).filter((name) => name.endsWith(".json"))
    const approvals = yield* Effect.forEach(names, (name) => read(path.join(folder, name), maxAgeMillis))
    return approvals.flatMap((one) => one ?? []).sort((a, b) => a.askedAtMillis - b.askedAtMillis)
  })

  const giveBack = (own: string, id: string) => files.rename(own, fileOf(id))
  const remove = (own: string) => Effect.ignore(files.remove(own))
  return { all, fileOf, giveBack, read, remove, takeAway, write }
})

const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))

const isFree = ({ askedUntilMillis = 0, state }: Approval, now: number) =>
  state === "pending" && askedUntilMillis <= now

/** The changed request; undefined leaves it unchanged. */
type ChangeApproval = (approval: Approval, now: number) => Approval | undefined

/** Steps that touch several files: change a request, or add one if there is room. */
const makeSteps = Effect.map(makeFiles, ({ all, fileOf, giveBack, read, remove, takeAway, write }) => {
  /** Claims a request, and writes it back if `changed` returns a new one. */
  const change = Effect.fnUntraced(function* (id: string, maxAgeMillis: number, changed: ChangeApproval) {
    const now = yield* Clock.currentTimeMillis
    const before = yield* read(fileOf(id), maxAgeMillis)
    if (before === undefined || changed(before, now) === undefined) return false
    const own = yield* takeAway(id)
    if (own === undefined) return false
    const approval = yield* read(own, maxAgeMillis)
    if (approval === undefined) return false
    const next = changed(approval, now)
    // Another process changed it between our read and our claim.
    if (next === undefined) {
      yield* giveBack(own, id)
      return false
    }
    yield* write(next)
    yield* remove(own)
    return true
  }, Effect.uninterruptible)

  const ask = Effect.fnUntraced(function* (approval: Approval, maxAgeMillis: number) {
    const approvals = yield* all(maxAgeMillis)
    const own = approvals.find(({ id }) => id === approval.id)
    if (own !== undefined && (own.state !== "used" || approval.state !== "approved")) return true
    const waiting = approvals.filter(({ state }) => state !== "used")
    const mine = waiting.filter(({ agent }) => agent === approval.agent)
    if (waiting.length >= pendingMax || mine.length >= pendingPerAgentMax) return false
    yield* write(approval)
    return true
  })

  const find = (id: string, maxAgeMillis: number) => read(fileOf(id), maxAgeMillis)
  return { all, ask, change, find }
})

export const approvalFiles = Effect.gen(function* () {
  const { all, ask, change, find } = yield* makeSteps
  const path = yield* Path.Path
  /** Serializes the steps: a file claimed by one step would seem missing to another. */
  const inTurn = yield* turnsIn(path.join((yield* Host).stateFolder, "tools-approvals-step"))

  const store: ApprovalStore = {
    all: (maxAgeMillis) =>
      guarded(inTurn(Effect.map(all(maxAgeMillis), (approvals) => approvals.filter(({ state }) => state !== "used")))),
    find: (id, maxAgeMillis) => guarded(inTurn(find(id, maxAgeMillis))),
    ask: (approval, maxAgeMillis) => guarded(inTurn(ask(approval, maxAgeMillis))),
    claim: (id, forMillis, maxAgeMillis) =>
      guarded(
        inTurn(
          change(id, maxAgeMillis, (one, now) =>
            isFree(one, now) ? { ...one, askedUntilMillis: now + forMillis } : undefined
          )
        )
      ),
    leave: (id, maxAgeMillis) =>
      guarded(
        inTurn(
          change(id, maxAgeMillis, (one) =>
            one.state === "pending"
              ? { ...one, askedUntilMillis: one.askedAtMillis + maxAgeMillis + leftMillis }
              : undefined
          )
        )
      ),
    take: (id) =>
      Effect.orElseSucceed(
        inTurn(
          change(id, Number.MAX_SAFE_INTEGER, (one, now) =>
            one.state === "approved" ? { ...one, state: "used", askedAtMillis: now } : undefined
          )
        ),
        () => false
      ),
    decide: (id, state: ApprovalDecision, maxAgeMillis) =>
      guarded(
        inTurn(
          change(id, maxAgeMillis, (one, now) =>
            one.state === "pending" ? { ...one, state, askedAtMillis: now } : undefined
          )
        )
      )
  }
  return store
})
