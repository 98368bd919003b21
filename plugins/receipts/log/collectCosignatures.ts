// Has the newest checkpoint cosigned by the witnesses of the settings (C2SP tlog-witness): each receives it with the
// proof that it continues what that witness signed last, which the witness itself names when this process does not know
// it. A cosignature that verifies becomes a line of the note. A witness that is silent changes nothing; one that has
// cosigned what the database does not have shows a fork, which ends the signing of the epoch.
import { Effect, Option } from "effect"
import { Base64 } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type HttpAnswered, HttpCalls } from "../../../kernel/platform/HttpCalls.ts"
import { Config } from "../Config.ts"
import { consistencyPath } from "./merkle.ts"
import { readVerifierKey, signatureBy } from "./note.ts"
import { Tree } from "./Tree.ts"

const timeoutMillis = 5_000
const answerBytesMax = 8_192
/** Requests for one checkpoint: one with what is known of the witness, one with what it answered. */
const triesMax = 2

const sizeForm = /^[0-9]{1,15}\n?$/
/** Characters of a witness's own words. */
const reasonMax = 200

/** What is cosigned of a checkpoint. */
interface Cosignable {
  readonly epoch: number
  readonly size: number
  readonly note: string
}

interface Witness {
  readonly url: string
  readonly key: NonNullable<ReturnType<typeof readVerifierKey>>
}

/** Body of a note, and its signature lines. */
const partsOf = (note: string) => {
  const end = note.indexOf("\n\n")
  return { body: note.slice(0, end + 1), lines: note.slice(end + 2).split("\n") }
}

/** Statuses of a witness that refuses a log's continuation; any other refusal is the witness's own affair. */
const conflict = 409
const unproven = 422

/** Asks one witness, and reads what its refusal shows. */
const makeAsking = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const http = yield* HttpCalls
  const tree = yield* Tree

  const ask = Effect.fnUntraced(function* ({ url }: Witness, { epoch, note, size }: Cosignable, old: number) {
    const proof =
      old === 0 || old > size
        ? []
        : yield* tree.compute(epoch, (sha256, read) => consistencyPath(sha256, read, old, size))
    const lines = [`old ${Math.min(old, size)}`, ...proof.map((hash) => Base64.encode(hash))]
    return yield* http.post({
      url: `${url}/add-checkpoint`,
      headers: { "content-type": "text/plain" },
      body: `${lines.join("\n")}\n\n${note}`,
      timeoutMillis,
      bytesMax: answerBytesMax
    })
  })

  const endSigning = Effect.fnUntraced(function* ({ epoch }: Cosignable, fork: string) {
    yield* sql`update receipts_epochs set fork = ${fork} where epoch = ${epoch} and fork is null`
    yield* Effect.logError(`${fork}: the log is a fork, and nothing of it is signed (tollkeeper receipts begin-epoch)`)
  })

  /**
   * Why a refusal shows a fork: the witness has cosigned more than the database has, or another tree. `old` is the size
   * that the checkpoint was said to continue, which the witness itself had named unless it is 0.
   */
  const forkIn = Effect.fnUntraced(function* (answer: HttpAnswered, { epoch, size }: Cosignable, old: number) {
    if (answer.status === unproven) return `refuses its proof: ${answer.body.trim().slice(0, reasonMax)}`
    const named = answer.status === conflict && sizeForm.test(answer.body) ? Number(answer.body) : 0
    const [row] = yield* sql<{ size: bigint }>`select size from receipts_epochs where epoch = ${epoch}`
    if (named > Number(row?.size ?? 0)) return `has cosigned ${named} leaves, the database has ${row?.size}`
    return named === size && old === size ? `has cosigned another tree of ${size} leaves` : undefined
  })

  return { ask, endSigning, forkIn }
})

export interface Collecting {
  /** Asks all witnesses for a checkpoint. A silent one keeps none of the others waiting. */
  readonly askAll: (checkpoint: Cosignable) => Effect.Effect<void, SqlError.SqlError>
}

export const makeCollecting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const { ask, endSigning, forkIn } = yield* makeAsking
  const { witnesses } = yield* Config
  const known: ReadonlyArray<Witness> = witnesses.flatMap(({ key, url }) => {
    const read = readVerifierKey(crypto, key)
    return read === undefined ? [] : [{ key: read, url: url.replace(/\/$/, "") }]
  })
  /** The size that a witness signed last, by epoch. */
  const signed = new Map<string, number>()

  /** The cosignature's line; None where the witness gives none. */
  const cosigned = Effect.fnUntraced(function* (witness: Witness, checkpoint: Cosignable) {
    const place = `${witness.key.name} ${checkpoint.epoch}`
    let old = signed.get(place) ?? 0
    let answer = yield* ask(witness, checkpoint, old)
    for (let tries = 1; tries < triesMax && answer.status === conflict && sizeForm.test(answer.body); tries++) {
      old = Number(answer.body)
      if (old > checkpoint.size) break
      answer = yield* ask(witness, checkpoint, old)
    }
    const { body } = partsOf(checkpoint.note)
    const line = answer.status === 200 ? signatureBy(crypto, witness.key, body, answer.body.split("\n")) : undefined
    if (line !== undefined) signed.set(place, checkpoint.size)
    else {
      const fork = yield* forkIn(answer, checkpoint, old)
      yield* fork === undefined
        ? Effect.logWarning(`the witness ${witness.key.name} did not cosign a checkpoint: ${answer.status}`)
        : endSigning(checkpoint, `the witness ${witness.key.name} ${fork}`)
    }
    return Option.fromUndefinedOr(line)
  })

  const collectFrom = Effect.fnUntraced(function* (witness: Witness, checkpoint: Cosignable) {
    const { body, lines } = partsOf(checkpoint.note)
    if (signatureBy(crypto, witness.key, body, lines) !== undefined) return
    const line = yield* Effect.catchTag(cosigned(witness, checkpoint), "CallFailed", ({ reason }) =>
      Effect.as(Effect.logWarning(`the witness ${witness.key.name} did not answer: ${reason}`), Option.none<string>())
    )
    if (Option.isNone(line)) return
    yield* sql`update receipts_checkpoints set note = note || ${`${line.value}\n`} where epoch = ${checkpoint.epoch}
      and size = ${checkpoint.size} and strpos(note, ${line.value.slice(0, line.value.lastIndexOf(" ") + 1)}) = 0`
  })

  const askAll: Collecting["askAll"] = (checkpoint) =>
    Effect.forEach(known, (witness) => collectFrom(witness, checkpoint), { concurrency: "unbounded", discard: true })
  return { askAll } satisfies Collecting
})
