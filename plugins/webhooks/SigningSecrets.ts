// The current signing secrets of each receiver. A source (the file of a `_FILE` variable) may change while the process
// runs, and an operator's command rereads it, for one receiver or for all. A rotation has an overlap: the new source
// still contains a current secret, so that the receiver accepts every message while it moves to the new one. A source
// that drops all of them is refused unless forced. On any error the secrets stay unchanged. No secret is stored in the
// database, logged or shown.
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Base64, Hex } from "effect/encoding"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Config, type Receiver, receiverNamed, type NoSuchReceiver } from "./Config.ts"

const secretBytesMin = 16
/** Hex digits that distinguish the secrets of two replicas. */
const markLength = 12
/** Secrets that sign concurrently: each lengthens a header. */
const secretsMax = 4

export type Secrets = ReadonlyArray<Redacted.Redacted<Uint8Array>>

/** Result of a rotation: the number of current secrets, and how many were added or removed. */
interface RotationResult {
  readonly signing: number
  readonly added: number
  readonly gone: number
}

/** The bytes of a secret: decoded Base64 after `whsec_`, otherwise the text's own bytes. */
const bytesOf = (secret: string): Uint8Array | undefined => {
  if (!secret.startsWith("whsec_")) return new TextEncoder().encode(secret)
  const decoded = Base64.decode(secret.slice("whsec_".length))
  return decoded._tag === "Success" ? decoded.success : undefined
}

const refuse = ({ name }: Receiver, message: string) =>
  new SettingsRefused({ path: `webhooks.receivers.${name}`, message })

/** The secrets in a receiver's source, in their order; an error never contains their text. */
const readSource = Effect.fnUntraced(function* (
  settings: Settings["Service"],
  receiver: Receiver
): Effect.fn.Return<Secrets, SettingsRefused> {
  const given = yield* Effect.try({
    try: () => (receiver.secretEnv === "" ? Option.none() : settings.secret(receiver.secretEnv)),
    catch: (error) => refuse(receiver, error instanceof Error ? error.message : "its secret cannot be read")
  })
  if (Option.isNone(given)) return yield* refuse(receiver, "the variable of its secret is not set")
  const secrets = Redacted.value(given.value)
    .split(/[,\n]/)
    .map((one) => one.trim())
    .filter((one) => one !== "")
    .map(bytesOf)
  if (secrets.length > secretsMax) return yield* refuse(receiver, `at most ${secretsMax} secrets may sign`)
  return secrets.length > 0 && secrets.every((one) => one !== undefined && one.length >= secretBytesMin)
    ? secrets.map((one) => Redacted.make(one!))
    : yield* refuse(receiver, `a secret has at least ${secretBytesMin} bytes, in Base64 after whsec_ or as plain text`)
})

export class SigningSecrets extends Context.Service<
  SigningSecrets,
  {
    readonly of: (receiver: Receiver) => Secrets
    /**
     * Loads the secrets from one receiver's source. Fails if they are unchanged, or if no current secret is among them,
     * unless `force`.
     */
    readonly rotate: (name: string, force: boolean) => Effect.Effect<RotationResult, NoSuchReceiver | SettingsRefused>
    /**
     * Loads the changes of the receiver `name`, or of all receivers if it is empty, and returns their names. Changes
     * none if one is refused. `withoutOverlap` needs no overlap.
     */
    readonly reread: (scope: {
      readonly name: string
      readonly withoutOverlap: boolean
    }) => Effect.Effect<ReadonlyArray<string>, SettingsRefused>
    /** Each receiver with a digest of its secrets, to compare replicas. */
    readonly marks: () => ReadonlyArray<string>
  }
>()("tollkeeper/webhooks/SigningSecrets") {
  static readonly layer = Layer.effect(
    SigningSecrets,
    Effect.gen(function* () {
      const { receivers } = yield* Config
      const settings = yield* Settings
      const crypto = yield* Crypto
      const read = (receiver: Receiver) =>
        Effect.map(readSource(settings, receiver), (secrets) => [receiver.name, secrets] as const)
      let signing = new Map(yield* Effect.forEach(receivers, read))

      const of = ({ name }: Receiver): Secrets => signing.get(name) ?? []
      const holds = (secrets: Secrets, one: Redacted.Redacted<Uint8Array>) =>
        secrets.some((other) => crypto.timingSafeEqual(Redacted.value(other), Redacted.value(one)))
      const change = (receiver: Receiver, next: Secrets): RotationResult => ({
        signing: next.length,
        added: next.filter((one) => !holds(of(receiver), one)).length,
        gone: of(receiver).filter((one) => !holds(next, one)).length
      })
      /** Refuses a rotation without an overlap. */
      const gapOf = (receiver: Receiver, next: Secrets) =>
        change(receiver, next).gone < of(receiver).length
          ? Effect.void
          : refuse(
              receiver,
              "its source has none of the current signing secrets: write NEW,OLD and remove OLD when the " +
                `receiver has NEW, or, if OLD has leaked, \`tollkeeper webhooks rotate ${receiver.name} --at-once\``
            )

      return SigningSecrets.of({
        of,
        rotate: Effect.fnUntraced(function* (name, force) {
          const receiver = yield* receiverNamed(receivers, name)
          const [, next] = yield* read(receiver)
          const changed = change(receiver, next)
          if (changed.added + changed.gone === 0) {
            return yield* refuse(
              receiver,
              "its source contains the current signing secrets: write NEW,OLD into it first (the file that " +
                `${receiver.secretEnv}_FILE names; a variable only changes with a restart)`
            )
          }
          if (!force) yield* gapOf(receiver, next)
          signing.set(name, next)
          return changed
        }),
        reread: Effect.fnUntraced(function* ({ withoutOverlap, name }) {
          const selected = receivers.filter((receiver) => name === "" || receiver.name === name)
          const next = new Map(yield* Effect.forEach(selected, read))
          const nextOf = (receiver: Receiver) => next.get(receiver.name) ?? []
          if (!withoutOverlap) for (const receiver of selected) yield* gapOf(receiver, nextOf(receiver))
          const changes = selected.flatMap((receiver) => {
            const { added, gone } = change(receiver, nextOf(receiver))
            return added + gone === 0 ? [] : [`webhook ${receiver.name}: ${added} added, ${gone} removed`]
          })
          signing = new Map([...signing, ...next])
          return changes
        }),
        marks: () =>
          receivers.map((receiver) => {
            const digests = of(receiver).map((secret) => Hex.encode(crypto.sha256(Redacted.value(secret))))
            const mark = crypto.sha256(new TextEncoder().encode(`webhook secrets ${digests.toSorted().join()}`))
            return `webhook ${receiver.name} ${Hex.encode(mark).slice(0, markLength)}`
          })
      })
    })
  )
}
