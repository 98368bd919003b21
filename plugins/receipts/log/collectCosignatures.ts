// Has the newest checkpoint cosigned by the witnesses of the settings (C2SP tlog-witness): each receives it with the
// proof that it continues what that witness signed last, which the witness itself names when this process does not know
// it. A cosignature that verifies becomes a line of the note. A witness that is silent or refuses changes nothing else.
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

/** One turn over all witnesses. */
export const makeCollecting = Effect.fnUntraced(function* (
  newest: () => Effect.Effect<Option.Option<Cosignable>, SqlError.SqlError>
) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const http = yield* HttpCalls
  const tree = yield* Tree
  const { witnesses } = yield* Config
  const known: ReadonlyArray<Witness> = witnesses.flatMap(({ key, url }) => {
    const read = readVerifierKey(crypto, key)
    return read === undefined ? [] : [{ key: read, url: url.replace(/\/$/, "") }]
  })
  /** The size that a witness signed last, by epoch. */
  const signed = new Map<string, number>()

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

  /** The cosignature's line; None where the witness gives none. */
  const cosigned = Effect.fnUntraced(function* (witness: Witness, checkpoint: Cosignable) {
    const place = `${witness.key.name} ${checkpoint.epoch}`
    let old = signed.get(place) ?? 0
    let answer: HttpAnswered | undefined
    for (let tries = 0; tries < triesMax; tries++) {
      answer = yield* ask(witness, checkpoint, old)
      if (answer.status !== 409 || !/^[0-9]{1,15}\n?$/.test(answer.body)) break
      old = Number(answer.body)
    }
    const { body } = partsOf(checkpoint.note)
    const line = answer?.status === 200 ? signatureBy(crypto, witness.key, body, answer.body.split("\n")) : undefined
    if (line === undefined)
      yield* Effect.logWarning(`the witness ${witness.key.name} did not cosign a checkpoint: ${answer?.status}`)
    else signed.set(place, checkpoint.size)
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

  return Effect.gen(function* () {
    const checkpoint = yield* newest()
    if (Option.isNone(checkpoint)) return
    // A silent one keeps none of the others waiting.
    yield* Effect.forEach(known, (witness) => collectFrom(witness, checkpoint.value), {
      concurrency: "unbounded",
      discard: true
    })
  })
})
