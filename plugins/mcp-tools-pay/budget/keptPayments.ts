// Sealed data that a table of reservations stores separately: in memory, or as files in a separate folder. Each file is
// replaced as a whole.
import { Effect, FileSystem, Path, Schema } from "effect"
import { replaceFile } from "../replaceFile.ts"
import { BudgetUnavailable, type SealedContents } from "./BudgetStore.ts"

export interface KeptPayments {
  /** Merges with the data already kept. */
  readonly put: (id: string, contents: SealedContents) => Effect.Effect<void, BudgetUnavailable>
  readonly get: (id: string) => Effect.Effect<SealedContents, BudgetUnavailable>
  readonly drop: (id: string) => Effect.Effect<void>
  /** Drops the data of all other reservations. */
  readonly retain: (ids: ReadonlySet<string>) => Effect.Effect<void, BudgetUnavailable>
  /** Length of each kept content, in characters. The caller holds the store's lock. */
  readonly contents: Effect.Effect<ReadonlyMap<string, number>, BudgetUnavailable>
}

export const keptInMemory = (): KeptPayments => {
  const all = new Map<string, SealedContents>()
  return {
    put: (id, contents) => Effect.sync(() => void all.set(id, { ...all.get(id), ...contents })),
    get: (id) => Effect.sync(() => all.get(id) ?? {}),
    drop: (id) => Effect.sync(() => void all.delete(id)),
    retain: (ids) =>
      Effect.sync(() => {
        for (const id of all.keys()) if (!ids.has(id)) all.delete(id)
      }),
    contents: Effect.sync(
      () => new Map([...all].flatMap(([id, { content }]) => (content === undefined ? [] : [[id, content.length]])))
    )
  }
}

const Text = Schema.fromJsonString(
  Schema.Struct({ payment: Schema.optionalKey(Schema.String), content: Schema.optionalKey(Schema.String) })
)
const decode = Schema.decodeUnknownEffect(Text)

/** Files in `folder`, which several processes share: one for a payment, and one for its content. */
export const keptInFiles = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const fileOf = (id: string, suffix = "json") => path.join(folder, `${id.replace(/[^0-9a-z_]/g, "")}.${suffix}`)
  const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))
  const textOf = (file: string) =>
    files.readFileString(file).pipe(
      Effect.map((text): string | undefined => text),
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound",
        () => Effect.succeed(undefined)
      )
    )

  const get = Effect.fnUntraced(function* (id: string) {
    const text = yield* textOf(fileOf(id))
    const contents: SealedContents = text === undefined ? {} : yield* decode(text)
    const content = yield* textOf(fileOf(id, "content"))
    return content === undefined ? contents : { ...contents, content }
  })
  const remove = (file: string) => Effect.ignore(files.remove(file))

  const all: KeptPayments = {
    put: (id, { content, payment }) =>
      guarded(
        Effect.gen(function* () {
          if (payment !== undefined) yield* replaceFile(files, fileOf(id), JSON.stringify({ payment }))
          if (content !== undefined) yield* replaceFile(files, fileOf(id, "content"), content)
        })
      ),
    get: (id) => guarded(get(id)),
    retain: (ids) =>
      guarded(
        Effect.flatMap(files.readDirectory(folder), (names) =>
          Effect.forEach(
            names.filter((name) => !ids.has(name.replace(/\.\w+$/, ""))),
            (name) => remove(path.join(folder, name)),
            { discard: true }
          )
        )
      ),
    drop: (id) => Effect.andThen(remove(fileOf(id)), remove(fileOf(id, "content"))),
    contents: guarded(
      Effect.gen(function* () {
        const names = (yield* files.readDirectory(folder)).filter((name) => name.endsWith(".content"))
        const sizes = yield* Effect.forEach(names, (name) => Effect.option(files.stat(path.join(folder, name))))
        return new Map(
          sizes.flatMap((found, at) =>
            found._tag === "Some" ? [[names[at]!.replace(/\.content$/, ""), Number(found.value.size)] as const] : []
          )
        )
      })
    )
  }
  return all
})
