// Asks the configured witnesses to cosign the newest checkpoint (C2SP tlog-witness). Each witness receives the proof
// that the checkpoint continues the last checkpoint that it signed; if this process has lost that size, the witness
// returns it. A valid cosignature becomes a line of the note. An unreachable witness changes nothing. If a witness has
// cosigned leaves that the database lacks, the log is a fork and we stop signing the epoch. A published copy can show a
// fork as well.
import { Effect, Option } from "effect"
import { Base64 } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type HttpAnswered, HttpCalls } from "../../../kernel/platform/HttpCalls.ts"
import { Config } from "../Config.ts"
import { makeComparingCopies } from "./compareCopies.ts"
import { consistencyPath } from "./merkle.ts"
import { partsOf, readVerifierKey, signatureBy } from "./note.ts"
import { Tree } from "./Tree.ts"

const timeoutMillis = 5_000
const answerBytesMax = 8_192
/** Requests per checkpoint: one with the witness's last known size, one with the size that it answered. */
const triesMax = 2

const sizeForm = /^[0-9]{1,15}\n?$/
/** Maximum characters that we keep of a witness's error message. */
const reasonMax = 200

/** The parts of a checkpoint that a witness cosigns. */
interface Cosignable {
  readonly epoch: number
  readonly size: number
  readonly note: string
}

interface Witness {
  readonly url: string
  readonly key: NonNullable<ReturnType<typeof readVerifierKey>>
}

/** HTTP statuses with which a witness rejects a log's continuation. Other errors do not concern the log. */
const conflict = 409
const unproven = 422

/** Asks one witness, and evaluates its refusal. */
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
   * Why a refusal shows a fork: the witness has cosigned more leaves than the database has, or another tree. `old` is
   * the size that our proof started from. The witness had returned it, unless it is 0.
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
  /** Compares a checkpoint with the published copies, and asks all witnesses in parallel to cosign it. */
  readonly askAll: (checkpoint: Cosignable) => Effect.Effect<void, SqlError.SqlError>
}

export const makeCollecting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const { ask, endSigning, forkIn } = yield* makeAsking
  const forkInCopies = yield* makeComparingCopies
  const { witnesses } = yield* Config
  const known: ReadonlyArray<Witness> = witnesses.flatMap(({ key, url }) => {
    const read = readVerifierKey(crypto, key)
    return read === undefined ? [] : [{ key: read, url: url.replace(/\/$/, "") }]
  })
  /** The last size that each witness signed, by epoch. */
  const signed = new Map<string, number>()

  /** The cosignature's line; None if the witness does not cosign. */
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
    // A replica may have signed this size again since, at another time.
    yield* sql`update receipts_checkpoints set note = note || ${`${line.value}\n`} where epoch = ${checkpoint.epoch}
      and size = ${checkpoint.size} and starts_with(note, ${body})
      and strpos(note, ${line.value.slice(0, line.value.lastIndexOf(" ") + 1)}) = 0`
  })

  const askAll: Collecting["askAll"] = Effect.fnUntraced(function* (checkpoint) {
    const fork = yield* forkInCopies(checkpoint.epoch)
    if (fork !== undefined) return yield* endSigning(checkpoint, fork)
    yield* Effect.forEach(known, (witness) => collectFrom(witness, checkpoint), {
      concurrency: "unbounded",
      discard: true
    })
  })
  return { askAll } satisfies Collecting
})
