// Cursors: `c1.<payload>.<HMAC-SHA256>`, both parts base64url. The payload has the snapshot, the position, the
// fingerprint of the filters and the expiry; the signature makes it authentic. A cursor opens on every replica that has
// the secret, for the filters it was made for, until it expires (S124–S126, rules 4).
import { Clock, Context, Effect, Layer, Option, Redacted, Result } from "effect"
import { Base64Url } from "effect/encoding"
import { generatedSecret } from "../../../kernel/database/generatedSecret.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { memoize } from "../../../kernel/cache/memoize.ts"
import { Config } from "../Config.ts"
import type { CursorPayload } from "../contract.ts"

/** A search cursor carries its ranking: up to a thousand ids. */
const cursorLengthMax = 12_288
const fingerprintsKept = 1_000
/** Bounds of the cache of cursors that this process has signed or verified: entries, and their life. */
const cachedMax = 2_000
const cachedLengthMax = 1_024
const encoder = new TextEncoder()

/**
 * The secrets, the signing one first: from the environment, or made once and kept in the database, which all replicas
 * share.
 */
const cursorSecrets = Effect.gen(function* () {
  const { cursorSecret } = yield* Config
  if (Option.isSome(cursorSecret)) {
    const secrets = Redacted.value(cursorSecret.value)
      .split(",")
      .map((secret) => secret.trim())
      .filter((secret) => secret !== "")
    if (secrets.length > 0) return secrets.map((secret) => encoder.encode(secret))
  }
  return [yield* generatedSecret("cursor", "catalog_secrets")]
})

/** Snapshot, position, fingerprint, and expiry in seconds. */
interface Signed {
  readonly s: string
  readonly p: string
  readonly f: string
  readonly e: number
}

/** Signs with the first secret, opens with any of them. */
export const cursorsOf = (
  secrets: ReadonlyArray<Uint8Array>,
  crypto: Crypto["Service"],
  minutes: number
): Cursors["Service"] => {
  const sign = (secret: Uint8Array, payload: string) => crypto.hmacSha256(secret, encoder.encode(`c1.${payload}`))
  // Most cursors are of the same few filters.
  const shortened = memoize({ name: "filter-fingerprints", capacity: fingerprintsKept }, (fingerprint) =>
    Base64Url.encode(crypto.sha256(encoder.encode(fingerprint)).slice(0, 16))
  )

  /** Rounded, so that an unchanged page has the same cursor and entity tag for minutes. */
  const endOf = (now: number): number => {
    const grid = minutes * 20
    return Math.floor((now / 1_000 + minutes * 60) / grid) * grid
  }

  // Most pages are requested soon after the previous one, and the same by many callers: a cursor that this process has
  // signed or verified is not verified again.
  const signed = new LruCache<string, Signed>({ name: "cursors", capacity: cachedMax })
  const cache = (cursor: string, payload: Signed): void => {
    if (cursor.length <= cachedLengthMax) signed.set(cursor, payload)
  }

  const seal = ({ fingerprint, position, snapshot }: CursorPayload) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const content = { s: snapshot.toString(), p: position, f: shortened(fingerprint), e: endOf(now) }
      const payload = Base64Url.encode(JSON.stringify(content))
      const cursor = `c1.${payload}.${Base64Url.encode(sign(secrets[0]!, payload))}`
      cache(cursor, content)
      return cursor
    })

  const read = (cursor: string): Signed | undefined => {
    const [version, payload, signature, ...rest] = cursor.length > cursorLengthMax ? [] : cursor.split(".")
    if (version !== "c1" || payload === undefined || signature === undefined || rest.length > 0) return undefined
    const given = Base64Url.decode(signature)
    if (Result.isFailure(given)) return undefined
    if (!secrets.some((secret) => crypto.timingSafeEqual(sign(secret, payload), given.success))) return undefined
    const text = Base64Url.decodeString(payload)
    return Result.isFailure(text) ? undefined : (JSON.parse(text.success) as Signed)
  }

  const open = (cursor: string, fingerprint: string) =>
    Effect.map(Clock.currentTimeMillis, (now): Option.Option<CursorPayload> => {
      const known = signed.get(cursor)
      const content = known ?? read(cursor)
      if (known === undefined && content !== undefined) cache(cursor, content)
      if (content === undefined || content.e * 1_000 < now || content.f !== shortened(fingerprint)) return Option.none()
      return Option.some({ snapshot: BigInt(content.s), position: content.p, fingerprint })
    })

  return { seal, open }
}

export class Cursors extends Context.Service<
  Cursors,
  {
    readonly seal: (payload: CursorPayload) => Effect.Effect<string>
    /** None when the cursor is not authentic, has expired, or belongs to another fingerprint. */
    readonly open: (cursor: string, fingerprint: string) => Effect.Effect<Option.Option<CursorPayload>>
  }
>()("tollkeeper/catalog/Cursors") {
  static readonly layer = Layer.effect(
    Cursors,
    Effect.gen(function* () {
      const { cursorMinutes } = yield* Config
      return Cursors.of(cursorsOf(yield* cursorSecrets, yield* Crypto, cursorMinutes))
    })
  )
}
