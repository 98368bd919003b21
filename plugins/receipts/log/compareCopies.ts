// Reads the published copies of the log (`receipts.copies`). A copy's checkpoint that a key of this log has signed
// shows a fork if the database has fewer leaves, another tree or no such epoch. A copy cannot lie: we ignore
// checkpoints without a signature by this log's keys, and those under a retired key, which may be stolen.
import { Duration, Effect, Option, Result, Schema } from "effect"
import { Base64, Hex } from "effect/encoding"
import { FetchHttpClient, HttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import { readText } from "../../../kernel/http/readText.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import { ReceiptKeys } from "../keys/ReceiptKeys.ts"
import { nameColumn, originOf } from "./Epochs.ts"
import { rootOfRange } from "./merkle.ts"
import { ed25519, partsOf, signatureBy } from "./note.ts"
import { Tree } from "./Tree.ts"

const timeout = Duration.seconds(5)
const bytesMax = 1_000_000
const tooLong = "too long"

const EpochsListed = Schema.Struct({ epochs: Schema.Array(Schema.Struct({ origin: Schema.String })) })

const headForm = /^([^\s]+)\n(0|[1-9][0-9]{0,14})\n([A-Za-z0-9+/]{43}=)\n/

const makeReads = Effect.gen(function* () {
  const http = yield* HttpClient.HttpClient

  const read = (url: string) =>
    http.get(url).pipe(
      Effect.flatMap(({ status, stream }) =>
        status === 200 ? Effect.asSome(readText(stream, bytesMax, () => tooLong)) : Effect.succeedNone
      ),
      Effect.timeout(timeout),
      Effect.catch((error) => (error === tooLong ? Effect.succeedNone : Effect.fail(error)))
    )

  /** The newest checkpoint of a copy: from the newest epoch that it lists, or else from the log at its address. */
  const newestAt = Effect.fnUntraced(function* (copy: string) {
    const place = copy.replace(/\/+$/, "")
    const listed = Option.flatMap(
      yield* read(`${place}/epochs`),
      Schema.decodeUnknownOption(Schema.fromJsonString(EpochsListed))
    )
    const name = Option.getOrUndefined(listed)?.epochs.at(-1)?.origin.split("/log/")[1]
    return yield* read(`${place}${name === undefined ? "" : `/${name}`}/checkpoint`)
  })

  return newestAt
})

export const makeComparingCopies = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const keys = yield* ReceiptKeys
  const newestAt = yield* makeReads
  const { copies, host = "" } = yield* Config

  const isSigned = (note: string, origin: string): boolean => {
    const { body, lines } = partsOf(note)
    return keys
      .history()
      .filter(({ use, validUntil }) => use === "log" && validUntil === undefined)
      .some(
        ({ publicKey }) =>
          signatureBy(crypto, { name: origin, kind: ed25519, publicKey: Uint8Array.from(publicKey) }, body, lines) !==
          undefined
      )
  }

  /** The reason why a copy's checkpoint shows that this epoch is a fork. */
  const forkIn = Effect.fnUntraced(function* (copy: string, note: string, epoch: number) {
    const [, origin = "", written = "", root = ""] = headForm.exec(note) ?? []
    if (!isSigned(note, origin)) {
      yield* Effect.logWarning(`the copy ${copy} has no checkpoint that a key in force of this log signed`)
      return undefined
    }
    const rows = yield* sql<{ epoch: number; name: string | null; size: bigint }>`select epoch, size,
      ${sql.literal(nameColumn)} as name from receipts_epochs`
    const own = rows.find(({ name }) => originOf(host, name) === origin)
    if (own === undefined) return `has the epoch ${origin}, which the database does not have`
    // Skip earlier epochs: the entry that ended each names its published checkpoint.
    if (own.epoch !== epoch) return undefined
    const size = Number(written)
    if (size > Number(own.size)) return `has ${size} leaves, the database has ${own.size}`
    const here = yield* tree.compute(epoch, (sha256, node) => rootOfRange(sha256, node, 0, size))
    const there = Hex.encode(Result.getOrElse(Base64.decode(root), () => new Uint8Array()))
    return Hex.encode(here) === there ? undefined : `has another tree of ${size} leaves`
  })

  const compare = Effect.fnUntraced(function* (copy: string, epoch: number) {
    const note = yield* Effect.catch(newestAt(copy), (error) =>
      Effect.as(Effect.logWarning(`the copy ${copy} was not read`, error), Option.none<string>())
    )
    const fork = Option.isNone(note) ? undefined : yield* forkIn(copy, note.value, epoch)
    return fork === undefined ? undefined : `the copy ${copy} ${fork}`
  })

  /** The reason why a copy shows that an epoch is a fork; undefined if no copy does. A silent copy shows nothing. */
  return (epoch: number) =>
    Effect.map(
      Effect.forEach(copies, (copy) => compare(copy, epoch), { concurrency: "unbounded" }),
      (forks) => forks.find((fork) => fork !== undefined)
    )
}).pipe(Effect.provide(FetchHttpClient.layer))
