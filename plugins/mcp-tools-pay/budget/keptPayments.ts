// What a table of reservations keeps beside it: in memory, or one file a payment in a folder of its own, written beside
// and put in its place before it counts. What is in them is sealed.
import { Effect, FileSystem, Path, Schema } from "effect"
import { replaceFile } from "../replaceFile.ts"
import { BudgetUnavailable, type Kept } from "./BudgetStore.ts"

export interface KeptPayments {
  /** Adds to what is kept. */
  readonly put: (id: string, kept: Kept) => Effect.Effect<void, BudgetUnavailable>
  readonly get: (id: string) => Effect.Effect<Kept, BudgetUnavailable>
  readonly drop: (id: string) => Effect.Effect<void>
  readonly hasContent: (id: string) => boolean
  /** How many contents are kept. */
  readonly contents: () => number
}

export const keptInMemory = (): KeptPayments => {
  const all = new Map<string, Kept>()
  return {
    put: (id, kept) => Effect.sync(() => void all.set(id, { ...all.get(id), ...kept })),
    get: (id) => Effect.sync(() => all.get(id) ?? {}),
    drop: (id) => Effect.sync(() => void all.delete(id)),
    hasContent: (id) => all.get(id)?.content !== undefined,
    contents: () => [...all.values()].filter(({ content }) => content !== undefined).length
  }
}

const Text = Schema.fromJsonString(
  Schema.Struct({ payment: Schema.optionalKey(Schema.String), content: Schema.optionalKey(Schema.String) })
)
const decode = Schema.decodeUnknownEffect(Text)

/** Files of `folder`; those of payments that are not among `known` are removed. */
export const keptInFiles = Effect.fnUntraced(function* (folder: string, known: ReadonlySet<string>) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const fileOf = (id: string) => path.join(folder, `${id.replace(/[^0-9a-z_]/g, "")}.json`)
  const withContent = new Set<string>()
  const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))

  const read = Effect.fnUntraced(function* (id: string) {
    const file = fileOf(id)
    return (yield* files.exists(file)) ? yield* decode(yield* files.readFileString(file)) : {}
  })
  const write = (id: string, kept: Kept) => replaceFile(files, fileOf(id), JSON.stringify(kept))
  const drop = (id: string) =>
    Effect.andThen(
      Effect.ignore(files.remove(fileOf(id))),
      Effect.sync(() => void withContent.delete(id))
    )

  for (const name of yield* files.readDirectory(folder)) {
    const id = name.replace(/\.json$/, "")
    if (!known.has(id)) {
      yield* Effect.ignore(files.remove(path.join(folder, name)))
      continue
    }
    // What cannot be read now stays: it may be the one copy of a payment that was sent.
    const kept = yield* Effect.option(read(id))
    if (kept._tag === "Some" && kept.value.content !== undefined) withContent.add(id)
  }

  const all: KeptPayments = {
    put: (id, kept) =>
      guarded(
        Effect.gen(function* () {
          yield* write(id, { ...(yield* read(id)), ...kept })
          if (kept.content !== undefined) withContent.add(id)
        })
      ),
    get: (id) => guarded(read(id)),
    drop,
    hasContent: (id) => withContent.has(id),
    contents: () => withContent.size
  }
  return all
})
