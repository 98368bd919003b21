// Requests for approval as files, one a request in the state folder of one tool server, so that an operator decides
// them by the command line while it runs. Whoever takes a file away first has it.
import { Clock, Effect, FileSystem, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { type ApprovalStore, pendingMax } from "./ApprovalStore.ts"
import { type Approval, decodeApproval, encodeApproval } from "./ApprovalWire.ts"

export const approvalFiles = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { randomBytes } = yield* Crypto
  const folder = path.join((yield* Host).stateFolder, "tools-approvals")
  const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
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
      )
  }
  return store
})
