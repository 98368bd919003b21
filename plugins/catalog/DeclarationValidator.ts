// Reads, validates and records declarations through two fair queues: reading takes a bounded share of the process's
// time, and a few recordings run concurrently, round-robin across payers. A declaration that finds no place in a queue
// is refused immediately; a database error is `catalog_unavailable` to the seller and a line in the operator's log.
import { Context, Effect, Layer, Option, Result } from "effect"
import type { SqlError } from "effect/sql"
import { FairScheduler } from "../../kernel/effect/FairScheduler.ts"
import type { PaymentObservation } from "../../kernel/payment/Extension.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Config, dustBelow } from "./Config.ts"
import { droppedFields } from "./declaration/aboutResource.ts"
import { type Declaration, type Identity, isRejection, type Rejection } from "./declaration/Declaration.ts"
import { offerOf, readDeclaration } from "./declaration/DeclarationWire.ts"
import { makeCpuThrottle } from "./declaration/CpuThrottle.ts"
import { makeValidator } from "./declaration/validateInfo.ts"
import { Hints } from "./ownership/Hints.ts"
import { Recipients } from "./ownership/Recipients.ts"
import { Listings } from "./store/Listings.ts"
import { claimOf } from "./store/mergeDeclaration.ts"
import { type Carrier, isFree, type Recorded, rejected, unavailable } from "./store/Recorded.ts"
import { Base64, Hex } from "effect/encoding"
import { isSignedText } from "../../kernel/ledger/isSignedText.ts"
import { isFields } from "./fields.ts"

/**
 * A declaration that the recipient's account has signed is the seller's own, with or without a key of the facilitator.
 * Next to `info` and `schema` it has `signature`, the base64 of a SEP-53 signature by the payTo account. It signs the
 * version hash of the resource that this declaration alone would create, or that hash, a space and `signedAt`, any
 * text of at most 64 printable characters. The hash covers the description, the operation, the price and the
 * recipient, so that a signature is worth nothing for other words or another price. Pure.
 */
const signatureBytes = 64
const signatureLengthMax = 128

/** The signature's own digest, sha256 hex, if this account signed the extension over this hash. */
const readSignature = (
  crypto: Crypto["Service"],
  extension: unknown,
  payTo: string,
  hashOf: () => string
): Option.Option<string> => {
  if (!isFields(extension)) return Option.none()
  const { signature, signedAt } = extension
  if (typeof signature !== "string" || signature.length > signatureLengthMax) return Option.none()
  if (signedAt !== undefined && (typeof signedAt !== "string" || !/^[\x21-\x7e]{1,64}$/.test(signedAt)))
    return Option.none()
  const bytes = Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
  if (bytes.length !== signatureBytes) return Option.none()
  const text = [hashOf(), ...(signedAt === undefined ? [] : [signedAt])].join(" ")
  return isSignedText(crypto, payTo, text, bytes) ? Option.some(Hex.encode(crypto.sha256(bytes))) : Option.none()
}

/** Concurrent recordings, and the places in each of the two queues: of readings and of recordings. */
const recordingsMax = 4
const waitingMax = 64

/** Reading declarations takes at most this share of the process's time, however many arrive. */
const readingPace = { share: 0.2, burstMillis: 1_000 }

export interface ValidatedDeclaration {
  /** The part of the declaration that could be read. */
  readonly identity: Identity | undefined
  readonly recorded: Recorded
}

/** Dust, or a payment to its own payer: it costs nothing that a verified payment would not. */
const isWorthless = ({ payer, payment: { requirements } }: PaymentObservation): boolean =>
  payer === requirements.payTo || Number(Option.getOrElse(requirements.amount, () => 0n)) < dustBelow

const crowded = unavailable("too many declarations are waiting")

const failed = (error: SqlError.SqlError) =>
  Effect.as(
    Effect.logError("a declaration could not be recorded", error),
    unavailable(`database: ${error.reason._tag}`)
  )

export class DeclarationValidator extends Context.Service<
  DeclarationValidator,
  {
    readonly validate: (
      observation: PaymentObservation,
      sentKey: string,
      value: unknown,
      grade: Carrier["grade"],
      now: Date
    ) => Effect.Effect<ValidatedDeclaration>
  }
>()("tollkeeper/catalog/DeclarationValidator") {
  static readonly layer = Layer.effect(
    DeclarationValidator,
    Effect.gen(function* () {
      const config = yield* Config
      const listings = yield* Listings
      const hints = yield* Hints
      const recipients = yield* Recipients
      const crypto = yield* Crypto
      const validate = makeValidator()
      const pace = makeCpuThrottle(readingPace)
      const readings = new FairScheduler({ concurrentMax: 1, waitingMax })
      const recordings = new FairScheduler({ concurrentMax: recordingsMax, waitingMax })

      const read = (payment: PaymentObservation["payment"], sentKey: string, value: unknown) =>
        pace((): Declaration | Rejection => readDeclaration(offerOf(payment), sentKey, value, { config, validate }))

      const check = Effect.fnUntraced(function* (
        observation: PaymentObservation,
        sentKey: string,
        value: unknown,
        grade: Carrier["grade"],
        now: Date
      ) {
        const { authorization, payer, payment, stage } = observation
        const isDust = stage === "settled" && isWorthless(observation)
        const asker = { name: payer, isFree: isFree({ grade, isDust, stage }) }
        const found = yield* readings.run(asker, read(payment, sentKey, value))
        if (Option.isNone(found)) return { identity: undefined, recorded: crowded }
        const declaration = found.value
        const { identity } = declaration
        if (isRejection(declaration)) return { identity, recorded: rejected(declaration.reason, declaration.detail) }
        const signed =
          grade === "declared"
            ? Option.none<string>()
            : readSignature(crypto, value, declaration.terms.payTo, () => claimOf(crypto, declaration))
        const authorizedBy: Required<Carrier>["authorizedBy"] = (payTo) =>
          Option.match(
            readSignature(crypto, value, payTo, () => claimOf(crypto, declaration)),
            {
              onSome: (signature) => Effect.succeed(Option.some({ signature })),
              onNone: () =>
                Effect.map(recipients.gradeOf(payment.principal, payTo), (found) =>
                  found === "declared" ? Option.some({}) : Option.none()
                )
            }
          )
        const own = { stage, payer, authorization, authorizedBy, isDust, now }
        const carrier: Carrier = Option.match(signed, {
          onNone: () => ({ ...own, grade }),
          onSome: (signature) => ({ ...own, grade: "declared", signature })
        })
        const done = yield* recordings.run(asker, listings.record(declaration, carrier).pipe(Effect.catch(failed)))
        const outcome = Option.getOrElse(done, () => crowded)
        const dropped = droppedFields(payment.resource)
        const recorded = dropped.length === 0 ? outcome : { ...outcome, dropped }
        if (recorded.isHint === true) yield* hints.ask(declaration.identity, declaration.operation.method, payer)
        return { identity, recorded }
      })

      return DeclarationValidator.of({ validate: check })
    })
  )
}
