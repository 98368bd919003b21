// Requests for approval as files, one a request in the state folder of one tool server, so that an operator decides
// them by the command line while it runs. Whoever takes a file away first has it, to use an approval up or to decide a
// request: a file is changed by nobody but the one who has it. A decision that dies half way leaves no request, and the
// agent asks again.
import { Clock, Effect, FileSystem, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { type ApprovalStore, type Decided, pendingMax } from "./ApprovalStore.ts"
import { type Approval, decodeApproval, encodeApproval } from "./ApprovalWire.ts"

/** The files of one state folder, and the steps of which each is whole. */
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
    const isOld = (yield* Clock.currentTimeMillis) - approval.askedAtMillis > maxAgeMillis
    if (isOld) yield* Effect.ignore(files.remove(file))
    return isOld ? undefined : approval
  })

  const write = Effect.fnUntraced(function* (approval: Approval) {
    yield* made
    const draft = ownName(approval.id)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* files.open(draft, { flag: "wx", mode: 0o600 })
        yield* handle.writeAll(new TextEncoder().encode(encodeApproval(approval)))
        yield* handle.sync
      })
    )
    yield* files.rename(draft, fileOf(approval.id))
  })

  /** Takes the file away, under a name of one's own: to rename succeeds for one, and two may remove a file at once. */
  const takeAway = (id: string) => {
    const own = ownName(id)
    return Effect.match(files.rename(fileOf(id), own), { onFailure: () => undefined, onSuccess: () => own })
  }

  const all = Effect.fnUntraced(function* (maxAgeMillis: number) {
    yield* made
    const names = (yield* files.readDirectory(folder)).filter((name) => name.endsWith(".json"))
    const found = yield* Effect.forEach(names, (name) => read(path.join(folder, name), maxAgeMillis))
    return found.flatMap((one) => one ?? []).sort((a, b) => a.askedAtMillis - b.askedAtMillis)
  })

  const giveBack = (own: string, id: string) => files.rename(own, fileOf(id))
  const remove = (own: string) => Effect.ignore(files.remove(own))
  return { all, fileOf, giveBack, read, remove, takeAway, write }
})

export const approvalFiles = Effect.gen(function* () {
  const { all, fileOf, giveBack, read, remove, takeAway, write } = yield* makeFiles
  const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))

  const decide = Effect.fnUntraced(function* (id: string, state: Decided, maxAgeMillis: number) {
    if ((yield* read(fileOf(id), maxAgeMillis))?.state !== "pending") return false
    const own = yield* takeAway(id)
    if (own === undefined) return false
    const approval = yield* read(own, maxAgeMillis)
    // Somebody else decided it between the look and the taking.
    if (approval !== undefined && approval.state !== "pending") {
      yield* giveBack(own, id)
      return false
    }
    if (approval !== undefined) yield* write({ ...approval, state, askedAtMillis: yield* Clock.currentTimeMillis })
    yield* remove(own)
    return approval !== undefined
  }, Effect.uninterruptible)

  const store: ApprovalStore = {
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
    take: (id) =>
      Effect.flatMap(takeAway(id), (own) => (own === undefined ? Effect.succeed(false) : Effect.as(remove(own), true))),
    decide: (id, state, maxAgeMillis) => guarded(decide(id, state, maxAgeMillis))
  }
  return store
})
