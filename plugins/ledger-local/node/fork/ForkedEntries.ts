// A fork's cache of the network from which it began: each entry is fetched when it is first needed, and never
// refreshed. With a folder, fetched entries are appended to a separate file, a line for each key, before any decision
// uses them. A line that cannot be read, such as a line that was being written when the process died, is dropped and
// its entry fetched again. Changes of the fork are in the store over it.
import { Data, Effect, FileSystem, Option, Path, Schema } from "effect"
import type { EngineCrypto } from "../../engine/host/Random.ts"
import { keyOfEntry, keyString, type KeyString, ttlKeyString } from "../../engine/state/LedgerKeys.ts"
import { Store } from "../../engine/state/Store.ts"
import { codec, fromLatin1, latin1, type LedgerEntry } from "../../engine/xdr/Xdr.ts"
import { fromBase64, toBase64 } from "../text.ts"
import { type FetchedEntry, fetchEntries } from "./fetchEntries.ts"
import { forkedAtOf, Origin, readOrigin } from "./readOrigin.ts"
import { Upstream, type UpstreamFailed, upstreamFailed } from "./Upstream.ts"
import { privateFolder } from "../LedgerJournal.ts"

/** Maximum number of another network's keys that one fork keeps. */
const KEYS_MAX = 1_000_000
const TTL_PREFIX = "\0\0\0\x09"
const FILE = "fork.jsonl"

/** A folder that holds a fork and is opened as something else, or the reverse. */
export class ForkRefused extends Data.TaggedError("ForkRefused")<{ readonly message: string }> {}

export interface ForkedEntries {
  readonly origin: Origin
  /** The root of the fork's state. */
  readonly root: Store
  /** Learns whether there are entries under these keys. */
  readonly learn: (keys: ReadonlyArray<KeyString>) => Effect.Effect<void, UpstreamFailed>
}

const Line = Schema.fromJsonString(
  Schema.Struct({
    key: Schema.String,
    entry: Schema.optionalKey(Schema.String),
    ttl: Schema.optionalKey(Schema.String)
  })
)
const Head = Schema.fromJsonString(Origin)
const readLine = Schema.decodeUnknownOption(Line)
const readHead = Schema.decodeUnknownOption(Head)

const entryText = (entry: LedgerEntry): string => toBase64(codec.LedgerEntry.encode(entry))
const entryOf = (text: string | undefined): LedgerEntry | undefined =>
  text === undefined ? undefined : codec.LedgerEntry.decode(fromBase64(text)!)

const lineOf = ({ entry, key, ttl }: FetchedEntry): string =>
  `${JSON.stringify({
    key: toBase64(fromLatin1(key)),
    ...(entry === undefined ? {} : { entry: entryText(entry) }),
    ...(ttl === undefined ? {} : { ttl: entryText(ttl) })
  })}\n`

/** Decodes a line; undefined when it cannot be read or contradicts itself. */
const fetchedOf = (text: string): FetchedEntry | undefined => {
  const line = Option.getOrUndefined(readLine(text))
  if (line === undefined) return undefined
  try {
    const key = latin1(fromBase64(line.key)!)
    const entry = entryOf(line.entry)
    if (entry !== undefined && keyString(keyOfEntry(entry)) !== key) return undefined
    return { key, entry, ttl: entryOf(line.ttl) }
  } catch {
    return undefined
  }
}

const fileIn = (folder: string) => Effect.map(Path.Path, (path) => path.join(folder, FILE))

export const keepsFork = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  return yield* files.exists(yield* fileIn(folder))
}, Effect.orDie)

const read = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* files.readFileString(file)
  const [head = "", ...lines] = text.split("\n")
  const origin = Option.getOrUndefined(readHead(head))
  if (origin === undefined) return yield* new ForkRefused({ message: `${file} does not say which network was forked` })
  const fetched = lines.flatMap((line) => fetchedOf(line) ?? [])
  const whole = `${head}\n${fetched.map(lineOf).join("")}`
  // The next line must not continue a torn one.
  if (whole !== text) yield* files.writeFileString(file, whole, { mode: 0o600 })
  return { origin, fetched }
})

const note = (crypto: EngineCrypto, root: Store, { entry, key, ttl }: FetchedEntry): void => {
  root.learn(key, entry)
  root.learn(ttlKeyString(crypto, key), ttl)
}

interface OpenFork {
  readonly origin: Origin
  readonly fetched: ReadonlyArray<FetchedEntry>
  readonly keep: (fetched: ReadonlyArray<FetchedEntry>) => Effect.Effect<void>
}

const inMemory: Effect.Effect<OpenFork, UpstreamFailed, Upstream> = Effect.map(readOrigin, (origin) => ({
  origin,
  fetched: [],
  keep: () => Effect.void
}))

/** Uses a folder that also contains the fork's ledger; refuses a folder with another ledger. */
const inFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = yield* fileIn(folder)
  yield* privateFolder(folder)
  const isThere = yield* files.exists(file)
  if (!isThere && (yield* files.exists(path.join(folder, "snapshot.json"))))
    return yield* new ForkRefused({ message: `${folder} holds a ledger that is not a fork` })
  const { fetched, origin } = isThere ? yield* read(file) : { origin: yield* readOrigin, fetched: [] }
  if (!isThere) yield* files.writeFileString(file, `${JSON.stringify(origin)}\n`, { mode: 0o600 })
  const keep: OpenFork["keep"] = (more) =>
    Effect.orDie(files.writeFileString(file, more.map(lineOf).join(""), { flag: "a" }))
  return { origin, fetched, keep }
})

/** Opens the stored entries, or begins from the upstream's latest ledger. */
export const openForkedEntries = Effect.fnUntraced(function* (crypto: EngineCrypto, folder: string | undefined) {
  const upstream = yield* Upstream
  const { fetched, keep, origin } = yield* folder === undefined ? inMemory : inFolder(folder)
  const at = forkedAtOf(origin)
  const root = Store.partial()
  for (const one of fetched) note(crypto, root, one)
  const learn = Effect.fnUntraced(function* (keys: ReadonlyArray<KeyString>) {
    if (keys.some((key) => key.startsWith(TTL_PREFIX)))
      return yield* upstreamFailed("a time to live is available with its entry only")
    if (root.size / 2 + keys.length > KEYS_MAX)
      return yield* upstreamFailed(`a fork keeps at most ${KEYS_MAX} entries of it`)
    const more = yield* fetchEntries(crypto, at, keys).pipe(Effect.provideService(Upstream, upstream))
    const unknown = more.filter(({ key }) => !root.knows(key))
    yield* keep(unknown)
    for (const one of unknown) note(crypto, root, one)
  })
  return { origin, root, learn } satisfies ForkedEntries
})
