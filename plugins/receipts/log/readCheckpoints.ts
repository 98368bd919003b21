// Reads the log's checkpoints: the newest of an epoch, proofs in it, and the epochs. A proof always uses the newest
// checkpoint, and never a retired key's.
import { Clock, Effect, Option } from "effect"
import { Base64, Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import { entryKinds, type InclusionProof, type LogEpoch } from "../contract.ts"
import { ReceiptKeys } from "../keys/ReceiptKeys.ts"
import { nameColumn, originOf } from "./Epochs.ts"
import { inclusionPath, leafHash, rootOfRange } from "./merkle.ts"
import { verifierKey } from "./note.ts"
import { makeMapProofs } from "./PaymentMap.ts"
import { Tree } from "./Tree.ts"

export interface Leaf {
  readonly epoch: number
  readonly index: number
  readonly entry: Uint8Array
  /** The record that the leaf commits to. */
  readonly record: string
}

export interface Checkpoint {
  readonly epoch: number
  readonly size: number
  readonly root: Uint8Array
  readonly note: string
  readonly signedAt: Date
}

interface EpochRow {
  readonly epoch: number
  readonly name: string | null
  readonly size: bigint
  readonly begun: Date
  readonly reason: string | null
  readonly statement: string | null
}

const makeProofs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const keys = yield* ReceiptKeys
  const mapProofOf = yield* makeMapProofs
  const host = (yield* Config).host ?? ""

  const newest = (epoch: number) =>
    Effect.map(
      sql<Omit<Checkpoint, "size"> & { readonly size: bigint }>`select epoch, size, root, note, signed_at as "signedAt"
        from receipts_checkpoints where epoch = ${epoch} order by size desc limit 1`,
      ([row]) => Option.map(Option.fromUndefinedOr(row), (row): Checkpoint => ({ ...row, size: Number(row.size) }))
    )

  const pathOf = (epoch: number, index: number, size: number) =>
    Effect.map(
      tree.compute(epoch, (sha256, read) => inclusionPath(sha256, read, index, size)),
      (path) => path.map((hash) => Hex.encode(hash))
    )

  /** An epoch's log entries about a key, each with its path. */
  const keysOf = Effect.fnUntraced(function* (epoch: number, size: number, kid: string) {
    const rows = yield* sql<{ index: bigint; entry: string }>`select index,
        convert_from(substr(entry, 2), 'UTF8') as entry from receipts_leaves
      where epoch = ${epoch} and index < ${size} and salt is null and get_byte(entry, 0) = ${entryKinds.key}
        and strpos(convert_from(substr(entry, 2), 'UTF8'), ${`"kid":${JSON.stringify(kid)}`}) > 0 order by index`
    return yield* Effect.forEach(rows, ({ entry, index }) =>
      Effect.map(pathOf(epoch, Number(index), size), (hashes) => ({ index: Number(index), entry, hashes }))
    )
  })

  const proofOf = Effect.fnUntraced(function* ({ entry, epoch, index, record }: Leaf, kid: string | undefined) {
    const checkpoint = yield* newest(epoch)
    if (Option.isNone(checkpoint) || checkpoint.value.size <= index) return Option.none<InclusionProof>()
    const { note, signedAt, size } = checkpoint.value
    // A proof under a retired key proves nothing; a checkpoint under the new key follows within seconds.
    const key = keys.inForce("log", yield* Clock.currentTimeMillis)
    if (key !== undefined && signedAt.getTime() < key.validFrom) return Option.none<InclusionProof>()
    const inMap = note.includes("\nmap ") ? yield* mapProofOf({ epoch, note, size }, record) : undefined
    // A newer checkpoint was just signed.
    if (note.includes("\nmap ") && inMap === undefined) return Option.none<InclusionProof>()
    const [row] = yield* sql<{ name: string | null }>`select ${sql.literal(nameColumn)} as name from receipts_epochs
      where epoch = ${epoch}`
    return Option.some<InclusionProof>({
      epoch,
      origin: originOf(host, row!.name),
      index,
      size,
      leafHash: Hex.encode(leafHash(crypto.sha256, entry)),
      hashes: yield* pathOf(epoch, index, size),
      keys: kid === undefined ? [] : yield* keysOf(epoch, size, kid),
      ...(inMap === undefined ? {} : { map: inMap }),
      checkpoint: note
    })
  })
  return { newest, proofOf }
})

export const makeReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const keys = yield* ReceiptKeys
  const host = (yield* Config).host ?? ""
  const proofs = yield* makeProofs
  /** Numbers of named epochs by name; both are immutable. */
  const known = new Map<string, number>()

  const epochOf = Effect.fnUntraced(function* (name: string) {
    if (name === "1") return 1
    const found = known.get(name)
    if (found !== undefined) return found
    const [row] = yield* sql<{ epoch: number }>`select epoch from receipts_epochs
      where epoch > 1 and coalesce(name, epoch::text) = ${name}`
    if (row !== undefined) known.set(name, row.epoch)
    return row?.epoch
  })

  const epochs = Effect.gen(function* () {
    const rows = yield* sql<EpochRow>`select epoch, ${sql.literal(nameColumn)} as name, size, begun_at as begun, reason,
      statement from receipts_epochs order by epoch`
    const entries = yield* sql<{ epoch: number; index: bigint }>`select epoch, index from receipts_leaves
      where salt is null and get_byte(entry, 0) = ${entryKinds.key} order by epoch, index`
    const logKeys = keys.history().filter(({ use }) => use === "log")
    return yield* Effect.forEach(rows, ({ begun, epoch, name, reason, size: written, statement }) => {
      const [origin, size] = [originOf(host, name), Number(written)]
      const root = tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
      return Effect.map(root, (root): LogEpoch => ({
        epoch,
        origin,
        size,
        root: Base64.encode(root),
        begunAt: Math.floor(begun.getTime() / 1_000),
        reason,
        statement,
        keys: [...new Set(logKeys.map(({ publicKey }) => verifierKey(crypto, origin, publicKey)))],
        keyEntries: entries.flatMap((entry) => (entry.epoch === epoch ? [Number(entry.index)] : []))
      }))
    })
  })
  return { ...proofs, epochOf, epochs }
})
